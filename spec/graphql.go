// GraphQL: which operation a document asks for, and by which fields.

package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"understudy"
)

// GraphOperation is one operation of a GraphQL document (GraphQL, October 2021, 2.3).
type GraphOperation struct {
	Kind   string   // query, mutation, subscription
	Name   string   // "": it has none
	Fields []string // of its root selection, those of fragments included, without aliases; sorted
	Text   string   // the whole document, its tokens with one space between
}

// Operation finds the operation of a name in a document; "": the only one there is. It
// reads tokens, braces and the fields at the root. Errors are ErrInvalid.
func Operation(document, name string) (GraphOperation, error) {
	tokens, err := graphTokens(document)
	if err != nil {
		return GraphOperation{}, err
	}
	all, text, fragments := []GraphOperation{}, strings.Join(tokens, " "), map[string][]string{}
	roots := map[int][]string{} // the tokens of each operation's selection set
	for i := 0; i < len(tokens); {
		one, begin := GraphOperation{Kind: "query", Text: text}, i
		if tokens[i] != "{" {
			one.Kind = tokens[i]
			if i+1 < len(tokens) && isGraphName(tokens[i+1]) {
				one.Name = tokens[i+1]
			}
		}
		if i, err = endOfDefinition(tokens, i); err != nil {
			return GraphOperation{}, err
		}
		switch one.Kind {
		case "query", "mutation", "subscription":
			if slices.ContainsFunc(all, func(o GraphOperation) bool { return o.Name == one.Name }) {
				return GraphOperation{}, fmt.Errorf("%w: the GraphQL document has two operations %q", understudy.ErrInvalid,
					understudy.Clip(one.Name))
			}
			roots[len(all)] = selectionOf(tokens[begin:i])
			all = append(all, one)
		case "fragment":
			if fragments[one.Name] != nil {
				return GraphOperation{}, fmt.Errorf("%w: the GraphQL document has two fragments %q", understudy.ErrInvalid,
					understudy.Clip(one.Name))
			}
			fragments[one.Name] = selectionOf(tokens[begin:i])
		default:
			return GraphOperation{}, fmt.Errorf("%w: %q begins no operation of GraphQL", understudy.ErrInvalid, understudy.Clip(one.Kind))
		}
	}
	for i, one := range all {
		if name == "" && len(all) == 1 || one.Name == name && name != "" {
			one.Fields, err = rootFields(roots[i], fragments)
			return one, err
		}
	}
	return GraphOperation{}, fmt.Errorf("%w: the document has no operation %q", understudy.ErrInvalid, understudy.Clip(name))
}

// selectionOf returns the tokens between the braces of a definition's selection set. Braces
// within parentheses are values of variables or arguments.
func selectionOf(definition []string) []string {
	round := 0
	for i, token := range definition {
		switch {
		case token == "(":
			round++
		case token == ")":
			round--
		case token == "{" && round == 0:
			return definition[i+1 : len(definition)-1]
		}
	}
	return nil
}

// rootFields returns the names of the fields of a selection set, those of its fragments
// included. A field that a directive may leave out counts. The error is ErrInvalid: the
// selection set cannot be read, is empty, or names a fragment that is not in the document.
func rootFields(selection []string, fragments map[string][]string) ([]string, error) {
	fields, spread := map[string]bool{}, map[string]bool{}
	for todo := [][]string{selection}; len(todo) > 0; todo = todo[1:] {
		tokens, at := todo[0], 0
		next := func() (token string) {
			if at < len(tokens) {
				token, at = tokens[at], at+1
			}
			return token
		}
		follows := func(token string) bool { return at < len(tokens) && tokens[at] == token }
		for at < len(tokens) {
			name, isField := next(), true
			switch {
			case name == "}": // of an inline fragment, whose fields are those of the root
				continue
			case name == "...":
				isField = false
				if follows("on") {
					at += 2
				} else if at < len(tokens) && isGraphName(tokens[at]) {
					name = next()
					if fragments[name] == nil {
						return nil, fmt.Errorf("%w: the GraphQL document has no fragment %q", understudy.ErrInvalid, understudy.Clip(name))
					}
					if !spread[name] {
						spread[name], todo = true, append(todo, fragments[name])
					}
				}
			case follows(":"):
				at++
				name = next()
			}
			for follows("@") || follows("(") {
				if next() == "@" {
					at++
					continue
				}
				at = behind(tokens, at-1)
			}
			if isField {
				if !isGraphName(name) {
					return nil, fmt.Errorf("%w: the GraphQL document has no field %q", understudy.ErrInvalid, understudy.Clip(name))
				}
				fields[name] = true
			}
			if follows("{") {
				if at++; isField {
					at = behind(tokens, at-1)
				}
			}
		}
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("%w: the GraphQL document asks for no field", understudy.ErrInvalid)
	}
	return slices.Sorted(maps.Keys(fields)), nil
}

// behind returns the index of the token after the bracket that closes the one at i.
func behind(tokens []string, i int) int {
	for depth := 0; i < len(tokens); i++ {
		switch tokens[i] {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		}
		if depth <= 0 {
			return i + 1
		}
	}
	return len(tokens)
}

// endOfDefinition is behind the selection set of the definition that begins at i.
func endOfDefinition(tokens []string, i int) (int, error) {
	depth, round := 0, 0
	for ; i < len(tokens); i++ {
		switch tokens[i] {
		case "(":
			round++
		case ")":
			round--
		case "{":
			depth++
		case "}":
			if depth--; depth == 0 && round == 0 {
				return i + 1, nil
			}
		}
		if depth < 0 || round < 0 {
			break
		}
	}
	return 0, fmt.Errorf("%w: the braces of the GraphQL document do not fit", understudy.ErrInvalid)
}

func isGraphName(token string) bool {
	return token != "" && (token[0] == '_' || token[0]|0x20 >= 'a' && token[0]|0x20 <= 'z')
}

// graphTokens cuts a document into tokens; commas and comments are none (2.1).
func graphTokens(document string) (tokens []string, err error) {
	for rest := document; ; {
		rest = strings.TrimLeft(rest, " \t\r\n,\ufeff")
		if rest == "" {
			return tokens, nil
		}
		end := 1
		switch c := rest[0]; {
		case c == '#':
			if end = strings.IndexAny(rest, "\r\n"); end < 0 {
				return tokens, nil
			}
			rest = rest[end:]
			continue
		case c == '"':
			if end = endOfString(rest); end < 0 {
				return nil, fmt.Errorf("%w: a string of the GraphQL document has no end", understudy.ErrInvalid)
			}
		case strings.HasPrefix(rest, "..."):
			end = 3
		case !strings.ContainsRune("!$&()[]{}:=|@", rune(c)):
			if end = strings.IndexAny(rest, "!$&()[]{}:=|@\"# \t\r\n,\ufeff"); end < 0 {
				end = len(rest)
			}
			if dots := strings.Index(rest[:end], "..."); dots > 0 {
				end = dots
			}
			end = max(end, 1)
		}
		tokens, rest = append(tokens, rest[:end]), rest[end:]
	}
}

// endOfString is behind the string that a text begins with, less than 0 without an end.
func endOfString(text string) int {
	if strings.HasPrefix(text, `"""`) {
		for i := 3; i < len(text); i++ {
			if strings.HasPrefix(text[i:], `"""`) && text[i-1] != '\\' {
				return i + 3
			}
		}
		return -1
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '\n', '\r':
			return -1
		case '"':
			return i + 1
		}
	}
	return -1
}

// GraphQLAt reports whether GraphQL documents are sent to a path.
func (s *Spec) GraphQLAt(path string) bool {
	if s.GraphQL != "" && path == s.GraphQL {
		return true
	}
	p := s.postedAs(path)
	return p != nil && p.Post == postGraphQL
}

// PassesTo reports whether upstream answers requests to a path each time (Passes, GraphQL).
func (s *Spec) PassesTo(path string) bool {
	segments, err := understudy.SplitPath(path)
	if err != nil {
		return false
	}
	return s.GraphQL != "" && path == s.GraphQL || slices.ContainsFunc(s.passes, func(t Template) bool {
		_, ok := t.match(segments)
		return ok
	})
}

// compilePasses reads the paths of Passes.
func compilePasses(s *Spec) error {
	s.passes = nil
	for _, path := range s.Passes {
		t, err := ParseTemplate(path)
		if err != nil {
			return fmt.Errorf("spec %s: passes: %w", s.Name, err)
		}
		s.passes = append(s.passes, t)
	}
	if s.GraphQL != "" && (!strings.HasPrefix(s.GraphQL, "/") || strings.ContainsAny(s.GraphQL, "{}?#")) {
		return fmt.Errorf("spec %s: graphql %q: want a path without variables", s.Name, s.GraphQL)
	}
	return nil
}

// graphOperation reads the body of a GraphQL request (GraphQL over HTTP, 5.3): its operation
// and the members that count. Errors are ErrInvalid.
func graphOperation(body []byte) (op GraphOperation, request map[string]json.RawMessage, err error) {
	object, err := members(body)
	if err != nil {
		return op, nil, err
	}
	document, _ := textOf(object, graphDocument)
	name, _ := textOf(object, graphOperationName)
	op, err = Operation(document, name)
	request = map[string]json.RawMessage{}
	for _, name := range []string{graphDocument, graphOperationName, graphVariables} {
		if value, ok := object[name]; ok {
			request[name] = value
		}
	}
	return op, request, err
}

// mutated returns the kinds whose records a GraphQL request may change: those that name a
// field of its mutation. A request that cannot be read may change all kinds that name any.
func mutated(s *Spec, body []byte, hasQuery bool) (all []*Kind) {
	op, _, err := graphOperation(body)
	isRead := op.Kind == "query" && !hasQuery // parameters of the URL may say another operation
	for _, k := range s.Kinds {
		names := func(field string) bool { return slices.Contains(k.Mutations, field) }
		if len(k.Mutations) > 0 && (err != nil || hasQuery || !isRead && slices.ContainsFunc(op.Fields, names)) {
			all = append(all, k)
		}
	}
	return all
}

// asksSecret returns the name of a secret field that a document may ask for. GraphQL writes
// temp_clone_token as tempCloneToken.
func asksSecret(s *Spec, op *GraphOperation) (name string, asks bool) {
	plain := func(text string) string { return strings.ToLower(strings.ReplaceAll(text, "_", "")) }
	secrets := map[string]bool{}
	for _, k := range s.Kinds {
		for _, f := range k.Fields {
			if f.Class == ClassSecret {
				secrets[plain(f.Name[strings.LastIndexByte(f.Name, '.')+1:])] = true
			}
		}
	}
	for token := range strings.SplitSeq(op.Text, " ") {
		if secrets[plain(token)] {
			return token, true
		}
	}
	return "", false
}
