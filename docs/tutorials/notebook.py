# %% [markdown]
# # In a notebook: which Debian packages are hard to place, and why?
#
# Open this file as a notebook in VS Code, PyCharm or Spyder, or make one of it: `jupytext --to ipynb notebook.py`.

# %% A graph: 2,153 packages in eight sections, who depends on whom, and the words of their descriptions.
import matplotlib.pyplot as plt
import numpy as np

import gcnsl
from gcnsl import NodeClassifier

data = gcnsl.load("debian")
print(data)

# %% A first model in a second. In a notebook a progress bar shows how training goes, and the last line of a cell
# shows the classifier; with the default method, "auto", and its leaderboard.
classifier = NodeClassifier("logistic").fit_graph(data)
classifier  # noqa: B018 - a notebook shows it

# %% How good is it on nodes that it has not learned from?
test = data.test_mask[:, 0].numpy()
truth = np.array(data.class_names)[data.y]
scores = classifier.evaluate(None, truth, nodes=test)
print(", ".join(f"{name} {value:.3f}" for name, value in scores.items()))

# %% Which sections are taken for which? Rows are true, columns predicted.
predicted = classifier.predict()
names = classifier.classes_
counts = np.array([[((truth == a) & (predicted == b))[test].sum() for b in names] for a in names])
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
left.imshow(counts, cmap="Blues")
left.set_xticks(range(len(names)), names, rotation=90)
left.set_yticks(range(len(names)), names)
left.set_title("true (rows) and predicted sections")

# %% How sure is it where it is right, and where it is wrong?
sure, is_right = classifier.predict_proba().max(axis=1)[test], (predicted == truth)[test]
colours = ["#2a7f8e", "#b5361c"]
right.hist([sure[is_right], sure[~is_right]], bins=10, stacked=True, label=["right", "wrong"], color=colours)
right.set_xlabel("probability of the predicted section")
right.set_ylabel("test packages")
right.legend()
figure.savefig("notebook.png", dpi=110)

# %% Sets that hold the true section of nine in ten packages: where one section is not enough, how many are?
sizes = classifier.predict_set(coverage=0.9)[test].sum(axis=1)
print({size: int((sizes == size).sum()) for size in range(1, sizes.max() + 1)})

# %% Why is the most confident mistake one?
worst = np.flatnonzero(test)[np.argmax(np.where(is_right, 0, sure))]
explanation = classifier.explain(data.node_ids[worst])
print(data.node_ids[worst], "is", truth[worst], "and predicted to be", predicted[worst])
for each in explanation.contributions[:3]:
    print(f"  {each.name}: {each.log_odds:+.2f} to the log-odds of {predicted[worst]} against {explanation.rival}")
