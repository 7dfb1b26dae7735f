"""Encoders: images or vectors in, feature vectors out.

Shapes: B images, C channels, S pixels per side, D features. An encoder of images takes float `(B, C, S, S)`
in [0, 1], an encoder of vectors float `(B, width_in)`; both return `(B, D)` with `D = encoder.width`.
"""
