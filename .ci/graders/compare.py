"""Makes pairs of a completion and a target, and compares the verdicts of math_equal on them with math-verify's.

    python compare.py pairs OUT.jsonl [GSM8K.jsonl]
    python compare.py compare PAIRS.jsonl VERDICTS DIFFERENCES.tsv

A line of DIFFERENCES.tsv is an answer, a target, our verdict, theirs, and why ours stands.
"""
import json
import random
import sys
from fractions import Fraction

BOX = "So the result is \\boxed{%s}."

# Forms of one value each: all pairs inside a group, and each against a form of the next group.
GROUPS = [
    ["\\frac{1}{2}", "1/2", "0.5", "\\frac12", "\\dfrac{1}{2}", "2^{-1}", "50\\%", "\\frac{2}{4}"],
    ["\\frac{3}{4}", "3/4", "0.75", "\\tfrac34", "1-\\frac14", "75\\%"],
    ["-7", "- 7", "-7.0", "\\frac{-7}{1}", "-\\frac{14}{2}", "(-7)"],
    ["\\sqrt{2}", "\\sqrt2", "2^{1/2}", "\\frac{2}{\\sqrt{2}}", "\\sqrt[4]{4}"],
    ["2\\sqrt{3}", "\\sqrt{12}", "2 \\cdot \\sqrt{3}", "\\frac{6}{\\sqrt{3}}"],
    ["1+\\sqrt{5}", "\\sqrt{5}+1", "\\frac{2+2\\sqrt5}{2}"],
    ["\\pi", "\\frac{2\\pi}{2}", "\\pi"],
    ["\\frac{\\pi}{6}", "\\pi/6", "\\frac{1}{6}\\pi"],
    ["e^2", "e^{2}", "e \\cdot e"],
    ["1000", "1,000", "10^3", "1{,}000"],
    ["12345", "12,345", "12\\,345"],
    ["x^2+2x+1", "(x+1)^2", "1+2x+x^2", "(x+1)(x+1)"],
    ["\\frac{x}{2}", "x/2", "\\frac12 x", "0.5x"],
    ["a^2-b^2", "(a-b)(a+b)", "-(b^2-a^2)"],
    ["\\sin(x)", "\\sin x", "\\sin{x}"],
    ["\\ln(2)", "\\ln 2", "\\log_{e} 2"],
    ["5!", "120", "5 \\cdot 4!"],
    ["\\binom{5}{2}", "10", "\\frac{5!}{2!3!}"],
    ["(1,2)", "(1, 2)", "\\left(1,2\\right)", "(1.0,\\frac{4}{2})"],
    ["[1,2]", "[1, 2]", "\\left[1,2\\right]"],
    ["(2,\\infty)", "(2, \\infty)", "x>2", "2<x"],
    ["(-\\infty,3]", "x \\le 3", "x \\leq 3", "(-\\infty, 3]"],
    ["(1,3)\\cup(4,5)", "(1,3) \\cup (4,5)", "(4,5)\\cup(1,3)"],
    ["\\{1,2,3\\}", "\\{3,2,1\\}", "\\left\\{1,2,3\\right\\}"],
    ["\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}"],
    ["x=5", "5", "x = 5"],
    ["y=2x+3", "y = 3+2x", "y=2x+3"],
    ["3+4i", "4i+3", "3+4 i"],
    ["\\text{east}", "\\text{ east }", "\\text{East}"],
    ["30^\\circ", "30", "30^{\\circ}"],
    ["5\\text{ cm}", "5", "5 \\text{ cm}"],
    ["\\$12.50", "12.50", "12.5"],
    ["0.333333", "\\frac13"],
    ["1\\frac{1}{2}", "\\frac32", "1.5"],
    ["3:4", "3 : 4", "6:8"],
    ["\\emptyset", "\\varnothing"],
    ["\\lfloor 2.5 \\rfloor", "2"],
    ["|-3|", "3"],
]


def forms():
    for i, group in enumerate(GROUPS):
        other = GROUPS[(i + 1) % len(GROUPS)]
        for a in group:
            for t in group:
                yield a, t
            yield a, other[0]


def generated(n):
    r = random.Random(7)
    for _ in range(n):
        v = Fraction(r.randint(-60, 60), r.choice([1, 1, 2, 3, 4, 5, 8, 9, 12]))
        w = v + Fraction(r.choice([0, 0, 1, -1]), r.choice([1, 2, 3]))
        yield written(r, v), written(r, w)


def written(r, v):
    p, q = v.numerator, v.denominator
    k = r.randint(2, 5)
    ways = ["%d/%d" % (p * k, q * k), "\\frac{%d}{%d}" % (p, q), "\\frac{%d}{%d}" % (p * k, q * k)]
    if q == 1:
        ways += ["%d" % p, "%d.0" % p, "%d+%d" % (p - k, k), "%d" % p]
    if q in (2, 4, 5, 8):
        ways.append(str(float(v)))
    if p < 0:
        ways.append("-\\frac{%d}{%d}" % (-p, q))
    return r.choice(ways)


def gsm8k(path, n):
    with open(path) as f:
        for line in list(f)[:n]:
            gold = json.loads(line)["answer"].split("####")[1].strip()
            value = int(gold.replace(",", ""))
            yield "The answer is $%s$." % gold, gold
            yield BOX % format(value, ","), gold
            yield "The answer is $%d$." % (value + 1), gold
            yield BOX % (10 * value + 1), gold


def pairs(out, gsm=None):
    all_pairs = [(BOX % a, t) for a, t in forms()] + [(BOX % a, t) for a, t in generated(1500)]
    if gsm:
        all_pairs += gsm8k(gsm, 300)
    with open(out, "w") as f:
        for c, t in dict.fromkeys(all_pairs):
            f.write(json.dumps({"completion": c, "target": t}) + "\n")


def compare(pairs_file, verdicts_file, differences):
    from math_verify import parse, verify

    known = {}
    with open(differences) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                answer, target, ours, theirs, why = line.rstrip("\n").split("\t")
                assert why, line
                known[answer, target] = ours, theirs
    with open(pairs_file) as f:
        cases = [json.loads(line) for line in f]
    with open(verdicts_file) as f:
        ours = [json.loads(line) for line in f]
    assert len(cases) == len(ours) > 1500, (len(cases), len(ours))
    seen, new = set(), []
    for c, v in zip(cases, ours):
        theirs = float(verify(parse("$" + c["target"] + "$"), parse(c["completion"])))
        if theirs == v:
            continue
        answer = c["completion"].removeprefix("So the result is \\boxed{").removesuffix("}.")
        key = answer, c["target"]
        said = json.dumps(v), json.dumps(theirs)
        seen.add(key)
        if known.get(key) != said:
            new.append("\t".join((*key, *said)))
    gone = [k for k in known if k not in seen]
    print("%d pairs, %d differences, all but %d of them explained" % (len(cases), len(seen), len(new)))
    for line in new:
        print("not explained:\t" + line)
    for key in gone:
        print("no difference any more:\t" + "\t".join(key))
    return 1 if new or gone else 0


if __name__ == "__main__":
    if sys.argv[1] == "pairs":
        pairs(*sys.argv[2:])
    else:
        sys.exit(compare(*sys.argv[2:]))
