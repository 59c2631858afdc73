// This file reads from a body what indexes need, in one pass.

package query

import "understudy/kit/jsonspan"

// Facts are the outermost value of a body and its members.
type Facts struct {
	Parent  string // the id of the record's parent, which the body may not contain
	Body    []byte
	Doc     jsonspan.Value // the outermost value; it has no kind if the body is not a JSON document
	Members []Member
}

// Member is a member of the outermost object of a body.
type Member struct {
	Name  []byte // the name as it stands in the body, with its escapes
	Value jsonspan.Value
}

// FactsOf parses the body of a record. It appends the members to room and returns the extended slice as rest. The
// facts share memory with this slice and with the body.
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
