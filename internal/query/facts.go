// Facts: what indexes read of a body, in one walk.

package query

import "understudy/kit/jsonspan"

// Facts are a body read once: its outermost value and the members of that.
type Facts struct {
	Parent  string // of the record, which the body need not tell
	Body    []byte
	Doc     jsonspan.Value // no kind: the body is no document
	Members []Member
}

// Member is a member of the outermost object of a body.
type Member struct {
	Name  []byte // as it stands in the body
	Value jsonspan.Value
}

// FactsOf reads the body of a record. The members are appended to room, which is returned; facts
// share it and the body.
func FactsOf(parent string, body []byte, room []Member) (f Facts, rest []Member) {
	doc, err := jsonspan.Parse(body)
	if err != nil {
		return Facts{Parent: parent, Body: body}, room
	}
	f = Facts{Parent: parent, Body: body, Doc: doc}
	if doc.Kind == jsonspan.Object {
		start := len(room)
		jsonspan.VisitMembers(body, doc, func(name []byte, v jsonspan.Value) bool {
			room = append(room, Member{name, v})
			return true
		})
		f.Members = room[start:len(room):len(room)]
	}
	return f, room
}
