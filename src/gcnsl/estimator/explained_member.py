"""Which member of an ensemble speaks for it when a prediction is explained."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from gcnsl.auto import Blend
from gcnsl.auto.blend import Member
from gcnsl.plain.class_votes import ClassVotes

if TYPE_CHECKING:
    from gcnsl.estimator.node_classifier import NodeClassifier


def explained_member(classifier: NodeClassifier) -> tuple[NodeClassifier, str]:
    """The classifier with the heaviest member that has reasons in place of the ensemble, and words for what it is.

    Models that read no features, or have no gradients, have no reasons. A classifier that is no ensemble is returned
    as it is, with the name of its method.
    """
    if not isinstance(classifier.fitted_, Blend):
        return classifier, classifier.fitted_.prepared.method.name
    members = classifier.fitted_.members
    member = next((each for each in members if _has_reasons(each)), members[0])
    alone = copy.copy(classifier)
    alone.fitted_ = member.fits[0]
    return alone, f"{member.name}, {member.weight:.0%} of the ensemble," if len(members) > 1 else member.name


def _has_reasons(member: Member) -> bool:
    model = member.fits[0].model
    return not isinstance(model, ClassVotes) and not getattr(model, "is_step_function", False)
