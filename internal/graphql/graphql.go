// This file finds the operation that a GraphQL document requests, and its fields.

// Package graphql parses GraphQL documents to find out which operation and which fields a request asks for.
package graphql

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"

	"understudy"
)

// Operation is one operation of a GraphQL document (GraphQL, October 2021, 2.3).
type Operation struct {
	Kind   string   // the type of the operation: query, mutation or subscription
	Name   string   // the name of the operation; "" if it has no name
	Fields []string // the names of the fields in the root selection, including those of fragments, without aliases; sorted
	Text   string   // the whole document as tokens, separated by single spaces
}

// maxTokens is the maximum number of tokens in a document.
const maxTokens = 50_000

// Find returns the operation with a given name. An empty name selects the only operation of the document. Its
// errors are ErrInvalid.
func Find(document, name string) (Operation, error) {
	invalid := func(format string, args ...any) (Operation, error) {
		why := understudy.Clip(fmt.Sprintf(format, args...))
		return Operation{}, fmt.Errorf("%w: the GraphQL document %s", understudy.ErrInvalid, why)
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: document}, maxTokens)
	if err != nil {
		return invalid("cannot be read: %s", err)
	}
	operations, fragments := map[string]*ast.OperationDefinition{}, map[string]bool{}
	for _, op := range doc.Operations {
		if operations[op.Name] != nil {
			return invalid("has two operations %q", op.Name)
		}
		operations[op.Name] = op
	}
	for _, f := range doc.Fragments {
		if fragments[f.Name] {
			return invalid("has two fragments %q", f.Name)
		}
		fragments[f.Name] = true
	}
	found := operations[name]
	if name == "" {
		found = nil
		if len(doc.Operations) == 1 {
			found = doc.Operations[0]
		}
	}
	if found == nil {
		return invalid("has no operation %q", name)
	}
	fields := map[string]bool{}
	if unknown := addFields(fields, found.SelectionSet, doc.Fragments, fragments); unknown != "" {
		return invalid("has no fragment %q", unknown)
	}
	text := strings.Join(Tokens(document), " ")
	return Operation{string(found.Operation), found.Name, slices.Sorted(maps.Keys(fields)), text}, nil
}

// addFields adds the field names of a selection set. It includes the names in fragments, and the names of fields that a
// directive may skip. unread marks the fragments not yet added. unknown is the name of a fragment that the document lacks.
func addFields(
	fields map[string]bool, all ast.SelectionSet, fragments ast.FragmentDefinitionList, unread map[string]bool,
) (unknown string) {
	for _, one := range all {
		var inner ast.SelectionSet
		switch one := one.(type) {
		case *ast.Field:
			fields[one.Name] = true
		case *ast.InlineFragment:
			inner = one.SelectionSet
		case *ast.FragmentSpread:
			named := fragments.ForName(one.Name)
			if named == nil {
				return one.Name
			}
			if unread[one.Name] {
				inner, unread[one.Name] = named.SelectionSet, false
			}
		}
		if unknown := addFields(fields, inner, fragments, unread); unknown != "" {
			return unknown
		}
	}
	return ""
}

// Tokens returns the tokens of a document up to the first error, without comments and commas (GraphQL, October 2021, 2.1).
func Tokens(document string) (tokens []string) {
	runes := []rune(document)
	for read := lexer.New(&ast.Source{Input: document}); ; {
		token, err := read.ReadToken()
		switch {
		case err != nil || token.Kind == lexer.EOF:
			return tokens
		case token.Kind != lexer.Comment:
			tokens = append(tokens, string(runes[token.Pos.Start:token.Pos.End]))
		}
	}
}
