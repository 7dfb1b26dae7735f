"""What the errors of filesystems mean to a user."""

import errno
from typing import Final

_REFUSALS: Final = {
    "AWS Error ACCESS_DENIED": (
        "the credentials (AWS_ACCESS_KEY_ID, profile, role) lack a right, or none were found"
    ),
    "AWS Error INVALID_ACCESS_KEY_ID": "the store does not know the access key",
    "AWS Error INVALID_CLIENT_TOKEN_ID": "the store does not know the access key",
    "AWS Error SIGNATURE_DOES_NOT_MATCH": "the secret key is not the access key's",
    "ExceptionName: ExpiredToken": "the credentials have expired; renew them",
}
_OBJECT_STORE_ERRORS: Final = {
    **_REFUSALS,
    "AWS Error NETWORK_CONNECTION": (
        "no server answers there; check the address (endpoint_override, scheme, region)"
    ),
    "AWS Error NO_SUCH_BUCKET": "there is no such bucket",
}
"""Marks in the error messages of AWS's library, and what they mean to a user."""


def is_refusal(error: OSError) -> bool:
    """Whether the store answers that a right is missing; S3's answer arrives as a plain OSError."""
    # Linux mounts a disk with errors read-only: that stays until somebody mends it.
    told = isinstance(error, PermissionError) or error.errno == errno.EROFS
    return told or any(mark in str(error) for mark in _REFUSALS)


def in_words(error: BaseException) -> str:
    """Return the error as text; for an error of an object store, with a hint what to check."""
    text = str(error)
    for mark, meaning in _OBJECT_STORE_ERRORS.items():
        if mark in text:
            return f"{meaning} ({text})"
    return text
