// GraphQL: the paths of GraphQL documents, and the kinds that they may change.

package spec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/graphql"
)

// IsGraphQLPath reports whether GraphQL documents are sent to a path.
func (s *Spec) IsGraphQLPath(path string) bool {
	if s.GraphQL != "" && path == s.GraphQL {
		return true
	}
	p := s.routes.findPosted(path)
	return p != nil && p.Post == postGraphQL
}

// IsPassThrough reports whether requests to a path always go upstream (PassThrough, GraphQL).
func (s *Spec) IsPassThrough(path string) bool {
	segments, err := understudy.SplitPath(path)
	if err != nil {
		return false
	}
	return s.GraphQL != "" && path == s.GraphQL || slices.ContainsFunc(s.passThrough, func(t Template) bool {
		_, ok := t.match(segments)
		return ok
	})
}

// compilePasses parses the paths of PassThrough.
func compilePasses(s *Spec) error {
	s.passThrough = nil
	for _, path := range s.PassThrough {
		t, err := ParseTemplate(path)
		if err != nil {
			return fmt.Errorf("spec %s: passes: %w", s.Name, err)
		}
		s.passThrough = append(s.passThrough, t)
	}
	if s.GraphQL != "" && (!strings.HasPrefix(s.GraphQL, "/") || strings.ContainsAny(s.GraphQL, "{}?#")) {
		return fmt.Errorf("spec %s: graphql %q is not a path without variables; write one such as /graphql", s.Name, s.GraphQL)
	}
	return nil
}

// parseGraphQLOperation parses the body of a GraphQL request (GraphQL over HTTP, 5.3). It returns the document,
// the requested operation, and the members of the body that have a meaning. Errors are ErrInvalid.
func parseGraphQLOperation(body []byte) (document string, op graphql.Operation, request map[string]json.RawMessage, err error) {
	object, err := parseObject(body)
	if err != nil {
		return "", op, nil, err
	}
	document, _ = textOf(object, graphDocument)
	name, _ := textOf(object, graphOperationName)
	op, err = graphql.Find(document, name)
	request = map[string]json.RawMessage{}
	for _, name := range []string{graphDocument, graphOperationName, graphVariables} {
		if value, ok := object[name]; ok {
			request[name] = value
		}
	}
	return document, op, request, err
}

// mutatedKinds returns the kinds whose records a GraphQL request may change: those that name a field of its
// mutation. A request that cannot be parsed may change every kind that names a mutation.
func mutatedKinds(s *Spec, body []byte, hasQuery bool) (all []*Kind) {
	_, op, _, err := parseGraphQLOperation(body)
	isRead := op.Kind == "query" && !hasQuery // parameters in the URL may name another operation, so such a request does not count as read
	for _, k := range s.Kinds {
		names := func(field string) bool { return slices.Contains(k.Mutations, field) }
		if len(k.Mutations) > 0 && (err != nil || hasQuery || !isRead && slices.ContainsFunc(op.Fields, names)) {
			all = append(all, k)
		}
	}
	return all
}

// findSecret returns the name of a secret field that a document may ask for. GraphQL writes temp_clone_token as
// tempCloneToken.
func findSecret(s *Spec, document string) (name string, asks bool) {
	plain := func(text string) string { return strings.ToLower(strings.ReplaceAll(text, "_", "")) }
	secrets := map[string]bool{}
	for _, k := range s.Kinds {
		for _, f := range k.Fields {
			if f.Class == ClassSecret {
				secrets[plain(f.Name[strings.LastIndexByte(f.Name, '.')+1:])] = true
			}
		}
	}
	for _, token := range graphql.Tokens(document) {
		if secrets[plain(token)] {
			return token, true
		}
	}
	return "", false
}
