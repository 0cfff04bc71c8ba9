package jinja

// expr is an expression.
type expr interface {
	eval(x *exec, e *env) Value
}

// stmt is a statement.
type stmt interface {
	exec(x *exec, e *env) flow
}

// flow is how a statement ended.
type flow int

const (
	flowNext flow = iota
	flowBreak
	flowContinue
)

// The expressions. at is the byte of the source that an error points at.
type (
	constExpr struct{ v Value }
	nameExpr  struct {
		name  string
		at    int
		ref   slotRef // set by bind
		undef *undefined
	}
	listExpr  struct{ items []expr }
	tupleExpr struct{ items []expr }
	dictExpr  struct{ keys, vals []expr }
	attrExpr  struct {
		obj   expr
		name  string
		plain bool // a dict has no attribute of this name
		at    int
	}
	itemExpr struct {
		obj, key expr
		at       int
	}
	sliceExpr struct {
		obj  expr
		part [3]expr // from, to, step; nil where left out
		at   int
	}
	callExpr struct {
		fn   expr
		args callArgs
		at   int
	}
	filterExpr struct {
		obj  expr // nil: the text of a filter or set block
		name string
		fn   *builtin // nil: unknown, an error when it is reached
		args callArgs
		at   int
	}
	testExpr struct {
		obj  expr
		name string
		fn   *builtin
		args callArgs
		not  bool
		at   int
	}
	binaryExpr struct {
		op   string
		a, b expr
		at   int
	}
	sumExpr struct { // a + b + c, of which the first two are added first
		terms []expr
		ats   []int // of the operator behind each term but the last
	}
	unaryExpr struct {
		op string
		a  expr
		at int
	}
	notExpr     struct{ a expr }
	andExpr     struct{ a, b expr }
	orExpr      struct{ a, b expr }
	concatExpr  struct{ parts []expr }
	compareExpr struct {
		first expr
		ops   []string
		rest  []expr
		at    int
	}
	condExpr struct{ yes, cond, no expr } // no may be nil
)

// callArgs are the arguments of a call as written: positions, names, *star, **double.
type callArgs struct {
	pos          []expr
	names        []string
	named        []expr
	star, double expr
}

// The statements.
type (
	textStmt  struct{ s string }
	printStmt struct {
		e  expr
		at int
	}
	ifStmt struct {
		conds  []expr
		bodies [][]stmt
		other  []stmt
	}
	forStmt struct {
		target    *target
		in, cond  expr // cond: for ... if cond; may be nil
		body      []stmt
		other     []stmt
		at        int
		bodyFrame frame
		elseFrame frame
		loopSlot  int32 // of the variable loop, -1 where the body does not read it

		// The condition runs in a function of its own, lazily, as the loop asks for items.
		condTarget *target
		condFrame  frame
		condFn     *function
	}
	setStmt struct {
		target *target
		e      expr
		at     int
	}
	setBlockStmt struct {
		target *target
		filter expr // nil for none
		body   []stmt
		frame  frame
		at     int
	}
	withStmt struct {
		names []*nameExpr
		vals  []expr
		body  []stmt
		frame frame
	}
	filterStmt struct {
		filter expr
		body   []stmt
		frame  frame
	}
	macroStmt struct {
		name *nameExpr
		def  *macroDef
	}
	callStmt struct {
		call *callExpr
		def  *macroDef
	}
	generationStmt struct{ def *macroDef }
	flowStmt       struct{ f flow }
)

// target is what is assigned to: a name, an attribute of a namespace, or several of them.
type target struct {
	name  *nameExpr
	attr  string
	items []*target // not nil: a tuple
}

// macroDef is the fixed part of a macro, or of the body of a call block, named caller.
type macroDef struct {
	name     string
	params   []*nameExpr
	defaults []expr // of the last len(defaults) params
	body     []stmt
	at       int

	// The rest is set by bind. A slot is -1 where the body does not read the name.
	fn                                  *function
	frame                               frame
	callerSlot, kwargsSlot, varargsSlot int32
	readsCaller, callerIsParam          bool
}

// children calls visit for each expression directly inside e.
func children(e expr, visit func(expr)) {
	all := func(list ...expr) {
		for _, c := range list {
			if c != nil {
				visit(c)
			}
		}
	}
	args := func(a *callArgs) {
		all(a.pos...)
		all(a.named...)
		all(a.star, a.double)
	}
	switch n := e.(type) {
	case *listExpr:
		all(n.items...)
	case *tupleExpr:
		all(n.items...)
	case *dictExpr:
		for i := range n.keys {
			all(n.keys[i], n.vals[i])
		}
	case *attrExpr:
		all(n.obj)
	case *itemExpr:
		all(n.obj, n.key)
	case *sliceExpr:
		all(n.obj, n.part[0], n.part[1], n.part[2])
	case *callExpr:
		all(n.fn)
		args(&n.args)
	case *filterExpr:
		all(n.obj)
		args(&n.args)
	case *testExpr:
		all(n.obj)
		args(&n.args)
	case *binaryExpr:
		all(n.a, n.b)
	case *sumExpr:
		all(n.terms...)
	case *unaryExpr:
		all(n.a)
	case *notExpr:
		all(n.a)
	case *andExpr:
		all(n.a, n.b)
	case *orExpr:
		all(n.a, n.b)
	case *concatExpr:
		all(n.parts...)
	case *compareExpr:
		all(n.first)
		all(n.rest...)
	case *condExpr:
		all(n.cond, n.yes, n.no)
	}
}

// eachName calls visit for each name that e reads; e may be nil.
func eachName(e expr, visit func(*nameExpr)) {
	if e == nil {
		return
	}
	if n, ok := e.(*nameExpr); ok {
		visit(n)
		return
	}
	children(e, func(c expr) { eachName(c, visit) })
}
