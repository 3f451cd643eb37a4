"""What this plugin offers. Cloister reads it at every start: import nothing heavy here."""

from cloister.plugin import Spec, hookimpl


@hookimpl
def cloister_components() -> list[Spec]:
    return [
        Spec(
            "evolution",
            "Method",
            "cloister_baselines.evolution:Evolution",
            "k-means by noisy counts of points that are clustered and mutated",
            paper="PE-means: arXiv 2606.00342 (2026)",
            presets={"counts": "discrete-gaussian"},
        ),
        Spec(
            "k-variates",
            "Method",
            "cloister_baselines.k_variates:KVariates",
            "k-median seeding on noisy means of 512 nodes, no rounds",
            paper="Nock, Canyasse, Boreli, Nielsen: k-variates++ (2016)",
            objective="k-median",
        ),
        Spec(
            "naive-noise",
            "Method",
            "cloister_baselines.naive_noise:NaiveNoise",
            "k-means on rows that were noised one by one",
            "Local",
            paper="Chang, Ghazi, Kumar, Manurangsi: Locally Private k-Means in One Round (2021)",
        ),
    ]
