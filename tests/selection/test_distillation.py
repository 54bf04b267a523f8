import torch

from gcnsl.methods import fit, prepare
from gcnsl.selection.blend import Blend, Member
from gcnsl.selection.candidates import Candidate
from gcnsl.selection.distillation import distil
from gcnsl.training import History

from .cases import small_problem


def test_the_student_learns_what_the_teacher_predicts_and_keeps_the_known_labels() -> None:
    problem = small_problem(n=150, held_back=90)
    train, val = problem.masks(0)
    method = Candidate("x", "label-propagation").resolved
    prepared = prepare(method, problem.graph, rows=problem.learned, seed=0, device=torch.device("cpu"))
    teacher = Blend((Member("x", 1.0, 1.0, (fit(prepared, train_mask=train, val_mask=val, seed=0),)),), History())
    student = distil(teacher, "gcn", train, val)
    assert student.prepared.method.name == "gcn"
    assert torch.equal(student.prepared.graph.y, problem.graph.y), "what the teacher says is no known label"
    agrees = student.logits().argmax(dim=1) == teacher.logits().argmax(dim=1)
    assert float(agrees[:90].float().mean()) > 0.9
    assert student.history["train_accuracy"][-1] > 0.9
