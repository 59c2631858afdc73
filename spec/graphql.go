// GraphQL: which operation a document asks for.

package spec

import (
	"fmt"
	"strings"

	"understudy"
)

// GraphOperation is one operation of a GraphQL document (GraphQL, October 2021, 2.3).
type GraphOperation struct {
	Kind string // query, mutation, subscription
	Name string // "": it has none
	Text string // the whole document, its tokens with one space between
}

// Operation finds the operation of a name in a document; "": the only one there is. It
// reads no more than tokens and braces. Errors are ErrInvalid.
func Operation(document, name string) (GraphOperation, error) {
	tokens, err := graphTokens(document)
	if err != nil {
		return GraphOperation{}, err
	}
	all, text := []GraphOperation{}, strings.Join(tokens, " ")
	for i := 0; i < len(tokens); {
		one := GraphOperation{Kind: "query", Text: text}
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
			all = append(all, one)
		case "fragment":
		default:
			return GraphOperation{}, fmt.Errorf("%w: %q begins no operation of GraphQL", understudy.ErrInvalid, understudy.Clip(one.Kind))
		}
	}
	if name == "" && len(all) == 1 {
		return all[0], nil
	}
	for _, one := range all {
		if one.Name == name && name != "" {
			return one, nil
		}
	}
	return GraphOperation{}, fmt.Errorf("%w: the document has no operation %q", understudy.ErrInvalid, understudy.Clip(name))
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
		case '\n':
			return -1
		case '"':
			return i + 1
		}
	}
	return -1
}
