"""Statistics of who earned it: effects, interactions, credit, and what they rest on."""

from __future__ import annotations

from expkit.analysis.glossary.entry import Statistic

CREDIT = (
    Statistic(
        "main effect",
        "What switching one method on does, averaged over all contexts that the grid has, as a factor on speed or a "
        "difference in quality. On a full grid it is the Banzhaf value, and main effects of methods that interact "
        "do not add up to what all do together.",
        "E_i = mean(v | i on) - mean(v | i off), v = -ln T or q; exp(E_i) for time",
        source="Yates (1937), Banzhaf (1965)",
        where=("effects[].time", "effects[].quality", "effects[].contexts"),
        also=("Banzhaf", "effect", "contexts"),
    ),
    Statistic(
        "Shapley credit",
        "A method's mean contribution over all orders of switching methods on; these credits make up the effect of "
        "all together exactly. Alone and last stand beside it, for where they disagree methods interact.",
        "phi_i = sum_S |S|! (k - 1 - |S|)! / k! (v(S + i) - v(S))",
        source="Shapley (1953)",
        where=("effects[].shapley_time", "effects[].shapley_quality", "effects[].part_time.shapley",
               "effects[].part_quality.shapley"),
        also=("Shapley", "credit"),
    ),
    Statistic(
        "add-one-in",
        "What a method does alone, on the bare baseline. It says nothing of how the method does beside others.",
        "v({i}) - v(none)",
        where=("effects[].part_time.add_one_in", "effects[].part_quality.add_one_in"),
        also=("alone",),
    ),
    Statistic(
        "leave-one-out",
        "What a method does last, on top of all others: what would be lost without it. Two methods that do the same "
        "have nothing each by this reading.",
        "v(all) - v(all but i)",
        where=("effects[].part_time.leave_one_out", "effects[].part_quality.leave_one_out"),
        also=("last",),
    ),
    Statistic(
        "variance share",
        "The share of the variance over the arms of a full grid that an effect or interaction explains. It says what "
        "moves the outcome, not who earned it.",
        "I_A^2 / sum_B I_B^2",
        source="functional ANOVA, Hutter et al. (2014)",
        where=("effects[].part_time.variance_share", "effects[].part_quality.variance_share",
               "credit.interactions[].time.variance_share", "credit.interactions[].quality.variance_share"),
    ),
    Statistic(
        "p of an effect",
        "How likely an effect at least this far from none would be, were there none, two-sided. One looks at many at "
        "once, so the q value beside it is the one to go by.",
        "P(|t_df| >= |estimate| / standard error)",
        where=("effects[].part_time.p", "effects[].part_quality.p", "credit.interactions[].time.p",
               "credit.interactions[].quality.p"),
    ),
    Statistic(
        "q value",
        "The share of false findings to expect among all effects and interactions of one axis that are at least as "
        "clear as this one. It screens; a claim needs a comparison that was named in advance.",
        "q_(i) = min over j >= i of m p_(j) / j",
        source="Benjamini and Hochberg (1995)",
        where=("effects[].part_time.q", "effects[].part_quality.q", "credit.interactions[].time.q",
               "credit.interactions[].quality.q"),
        also=("BH", "false discovery rate"),
    ),
    Statistic(
        "interaction",
        "What methods do together beyond what each does, averaged over the other methods: for a pair, half the "
        "difference of differences. Below one, or zero, they get in each other's way, above they help each other.",
        "I_A = 2^-(k-1) sum_c v(c) prod_{i in A} s_i(c), s = +-1",
        source="Yates (1937)",
        where=("credit.interactions[].time.interaction", "credit.interactions[].quality.interaction",
               "credit.interactions[].contexts", "credit.interactions_left_out"),
    ),
    Statistic(
        "dividend",
        "What a set of methods does on the bare baseline beyond all of its smaller sets. Dividends of all sets add up "
        "to what all methods do together.",
        "d(A) = sum_{B in A} (-1)^(|A| - |B|) v(B)",
        source="Harsanyi (1963)",
        where=("credit.interactions[].time.dividend", "credit.interactions[].quality.dividend"),
        also=("Harsanyi dividend",),
    ),
    Statistic(
        "Shapley interaction",
        "Of a pair of methods: the difference of differences, averaged over contexts with Shapley's weights. It is the "
        "part of the pair's credit that neither has by itself.",
        "sum_{S without i, j} |S|! (k - 2 - |S|)! / (k - 1)! (v(S+ij) - v(S+i) - v(S+j) + v(S))",
        source="Grabisch and Roubens (1999)",
        where=("credit.interactions[].time.shapley_interaction", "credit.interactions[].quality.shapley_interaction"),
    ),
    Statistic(
        "waterfall",
        "Methods switched on one after the other, each with what it adds to those before it. It adds up in any order, "
        "and hangs on the order.",
        "v(S + i) - v(S), S those before i",
        where=("credit.waterfalls[].time", "credit.waterfalls[].quality"),
    ),
    Statistic(
        "levels",
        "Of a method with several settings: what any of them does on average, and each against that average. The p "
        "value is of an F test that they do not differ.",
        "mean over levels of E; level minus that mean; F of levels by seeds",
        where=("credit.levels",),
    ),
    Statistic(
        "lack of fit",
        "How likely arms at least this far from a model of methods and pairs would be, were there no three-way "
        "interactions. Where it is small, credit from an incomplete grid rests on an assumption that the data deny.",
        "P(F >= mean square of the lack / mean square of the error)",
        where=("credit.lack_of_fit_p_time", "credit.lack_of_fit_p_quality"),
    ),
    Statistic(
        "Lenth margin",
        "With one seed there is no error to measure by; were most effects none, their middle is the noise, and an "
        "effect beyond the margin stands out. The simultaneous margin allows for looking at all of them.",
        "PSE = 1.5 median{|e| : |e| < 2.5 s_0}, s_0 = 1.5 median |e|; margin t_{.975,m/3} PSE",
        source="Lenth (1989)",
        where=("credit.unreplicated",),
        also=("Lenth", "PSE"),
    ),
)  # fmt: skip
