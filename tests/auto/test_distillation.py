import pytest
import torch

from gcnsl import synthetic
from gcnsl.auto.distillation import distil

from .cases import small_problem


def test_the_student_learns_what_the_teacher_says_and_keeps_the_known_labels() -> None:
    problem = small_problem(n=150, held_back=90)
    graph, truth = problem.graph, synthetic(n=150, h=0.8, classes=3, degree=4, features=8, seed=0, signal=0.9).y
    said = torch.where(graph.y == -1, truth, (truth + 1) % 3)
    student = distil(problem, graph, said, "gcn")
    assert student.prepared.method.name == "gcn"
    assert torch.equal(student.prepared.graph.y, graph.y), "what the teacher says is no known label"
    predicted = student.logits().argmax(dim=1)
    assert float((predicted == said)[:90].float().mean()) > 0.8
    train, val = problem.masks(0)
    assert float((predicted == graph.y)[train].float().mean()) > 0.8
    of_first_fold = float((predicted == graph.y)[val].float().mean())
    assert student.history.best["val_accuracy"] == pytest.approx(of_first_fold)
