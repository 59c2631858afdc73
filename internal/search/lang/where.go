// This file adds the conditions of a request to the text of a query.

package lang

import "understudy/internal/query"

// AddConditions returns a tree that also requires the given conditions. The error is a *query.SyntaxError, which points
// into the condition as the grammar writes it.
func AddConditions(tree *Node, all []query.FieldCondition) (*Node, error) {
	if len(all) == 0 {
		return tree, nil
	}
	parts := []*Node{tree}
	for _, c := range all {
		n := &Node{Op: OpField, Name: c.Field, Rel: relationOf(c.Comparison), Values: []Value{{Text: c.Value, prefix: c.Prefix}}}
		n.conditionText = n.String()
		n.end = len(n.conditionText)
		n.Values[0].end = n.end
		p := &parser{text: n.conditionText}
		if c.Value == "" {
			p.fail(0, n.end, "the value is empty; to find records without one write no:%s", n.Name)
		}
		if p.check(); p.err != nil {
			return nil, p.err
		}
		parts = append(parts, n)
	}
	return join(opAnd, parts), nil
}

func relationOf(c query.Comparison) relation {
	for _, r := range []relation{RelSame, relLess, relAtMost, relMore, relAtLeast} {
		if r.symbol() == string(c) {
			return r
		}
	}
	return RelIs
}
