package runner

import "trainer/loss"

// What is followed where a teacher's likeliest tokens are learnt: the divergence, which is train/loss less the entropy of what is
// learnt, that entropy, and how much of the teacher's distribution those tokens are.
const (
	forwardKL      = "distill/forward_kl"
	evalForwardKL  = "eval/" + forwardKL
	teacherEntropy = "distill/teacher_entropy"
	teacherMass    = "distill/teacher_mass"
)

// softly is the loss of a recipe that learns a teacher's likeliest tokens, nil of any other.
func (in *Inputs) softly() *loss.ForwardKL {
	l, _ := in.Recipe.Loss.Params.(*loss.ForwardKL)
	return l
}

// assembleCopies is assemble of sequences that are sent as copies. The reduction is over the sequences, so it is that of the
// loss however many copies each has; a step has all of them, and requests may have any.
func assembleCopies(data []loss.Datum, reduction string, l *loss.ForwardKL, parts func(n, each int) int) (Batch, error) {
	b, err := assemble(data, reduction, 1, 1)
	if err != nil {
		return Batch{}, err
	}
	copies, reduced := l.Copies(data), l.Copies(b.Parts[0])
	b.carry(copies, reduced, parts(len(copies), 1), 1)
	of := l.Teaching(data)
	b.Metrics[teacherEntropy], b.Metrics[teacherMass] = of.Entropy, of.Mass
	return b, nil
}
