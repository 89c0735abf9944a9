import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=(10_000, 32))
wanted = rng.normal(size=32)
y = x @ wanted + 0.1 * rng.normal(size=10_000)
weights = np.zeros(32)
for epoch in range(50):
    order = rng.permutation(len(x))
    for begin in range(0, len(x), 100):
        batch = order[begin : begin + 100]
        error = x[batch] @ weights - y[batch]
        weights -= 0.01 * x[batch].T @ error / len(batch)
    print(epoch, float(np.mean((x @ weights - y) ** 2)), np.linalg.norm(weights - wanted).item())
