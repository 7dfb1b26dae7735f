"""DINO: a student predicts the centred and sharpened distribution that a teacher has of another crop.

Caron et al. 2021, "Emerging properties in self-supervised vision transformers",
https://arxiv.org/abs/2104.14294, Eq. 1-4. Shapes: V views, L local crops, B images, K outputs.
"""

import torch
from torch import Tensor

from contrasweep.losses.scores import crop_cross_entropies, full_precision
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Positive, require_views


class DINO(Loss):
    """`- sum_k P_t(b)_k log P_s(a)_k` for every ordered pair of a crop a and another view b: Eq. 2 and 3.

    `P_s = softmax(s / temperature)` is the student's distribution, of views and local crops (Eq. 1).
    `P_t = softmax((t - centre) / teacher_temperature)` is the teacher's, of views alone, without gradient:
    the centre (Eq. 4) keeps one output from winning always, the low temperature keeps all from being alike.

    The mean over pairs, as released; Eq. 3 sums them.
    """

    temperature: Positive = 0.1
    teacher_temperature: Positive = 0.04

    @full_precision
    def terms(self, student: Tensor, teacher: Tensor, centre: Tensor) -> LossTerms:
        """V(V + L - 1)B valid terms, pair by pair: those of the B images of a pair stand together.

        Args:
            student: outputs `(V + L, B, K)`, those of the views first, V + L >= 2.
            teacher: outputs `(V, B, K)`, of the same views in the same order.
            centre: `(K,)`, see `moved_centre`.

        Raises:
            ValueError: other shapes.
        """
        require_views(student, at_least=2)
        if teacher.dim() != 3 or teacher.shape[1:] != student.shape[1:] or len(teacher) > len(student):
            allowed = f"(V, {student.shape[1]}, {student.shape[2]}), V at most {len(student)}"
            raise ValueError(f"teacher must be {allowed}, got {tuple(teacher.shape)}")
        if centre.shape != student.shape[2:]:
            raise ValueError(f"centre must be ({student.shape[2]},), got {tuple(centre.shape)}")
        targets = ((teacher.detach() - centre) / self.teacher_temperature).softmax(2)
        logits = student / self.temperature
        return LossTerms.all_valid(crop_cross_entropies(logits, targets.unbind(0)))


@torch.no_grad()
def moved_centre(centre: Tensor, teacher: Tensor, momentum: float) -> Tensor:
    """Return the centre `(K,)` moved towards the mean of the teacher's outputs `(V, B, K)`: Eq. 4."""
    return momentum * centre + (1 - momentum) * teacher.to(centre).mean((0, 1))
