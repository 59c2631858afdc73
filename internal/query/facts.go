// Facts: what indexes need to know about a body, read in one pass.

package query

import "understudy/kit/jsonspan"

// Facts are the outermost value of a body and its members.
type Facts struct {
	Parent  string // id of the record's parent, which the body may not contain
	Body    []byte
	Doc     jsonspan.Value // has no kind if the body is no JSON document
	Members []Member
}

// Member is a member of the outermost object of a body.
type Member struct {
	Name  []byte // name as it stands in the body
	Value jsonspan.Value
}

// FactsOf parses the body of a record. It appends the members to room and returns the result as rest. The facts
// share memory with it and with the body.
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
