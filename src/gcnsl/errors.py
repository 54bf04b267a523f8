"""The package's own error: something the caller gave cannot be used as it is."""


class InputError(ValueError):
    """Bad input, told in one sentence: which argument, its value, and what would help.

    Every check of user input in the package raises this type and nothing else, so that the
    command line can print the sentence and a program can catch it. It is a ``ValueError``
    because that is what scikit-learn's conventions and most callers expect.
    """
