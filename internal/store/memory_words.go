// The store in memory looks for words in all records.

package store

import (
	"understudy"
	"understudy/kit/words"
)

// askedText is the text of a question made ready; ok is false when it asks for
// none.
func (o *Options) askedText(q *understudy.Seek) (plan *textPlan, ok bool, err error) {
	if q.Text == nil {
		return nil, false, nil
	}
	plan, err = planText(q.Text, o.kindsAsked(q))
	return plan, true, err
}

// kindsAsked are the specs of the kinds a question is about; nil stands for
// those no spec names.
func (o *Options) kindsAsked(q *understudy.Seek) (kinds []*understudy.Kind) {
	for source, spec := range o.Specs {
		for _, k := range spec.Kinds {
			if wants(q, source, k.Name) {
				kinds = append(kinds, k)
			}
		}
	}
	if len(kinds) == 0 || len(q.Kinds) == 0 {
		kinds = append(kinds, nil)
	}
	return kinds
}

// memoryText is the text of one question.
type memoryText struct {
	holds   *words.Condition
	cutting cutting
}

// says reports whether one of the bodies of a record has the text: that in a
// shape, or, without one, in any.
func (t *memoryText) says(one *memorySpot, spec *understudy.Kind, shape string) bool {
	for name, h := range one.rec.held {
		if shape != "" && shape != name || h.state&(stateGone|stateForgotten) != 0 {
			continue
		}
		row := t.cutting.row(0, textRuleOf(spec), h.body)
		if t.holds.Match(row.fields(0)) {
			return true
		}
	}
	return false
}
