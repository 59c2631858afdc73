// Tokens: rotating the main account's credentials while the API runs.
package slowapi

import (
	"crypto/subtle"
	"errors"
	"slices"
	"sync/atomic"
)

// tokens are the passwords the main account may be asked with; nil: the one
// the world was made with. A rotation first takes the new one beside the old,
// as providers with a primary and a secondary token do.
type tokens struct{ now atomic.Pointer[[]string] }

const maxTokens = 10

// know tells whether a password is one of them.
func (t *tokens) know(password, first string) bool {
	all := []string{first}
	if set := t.now.Load(); set != nil {
		all = *set
	}
	same := 0
	for _, token := range all {
		same |= subtle.ConstantTimeCompare([]byte(password), []byte(token))
	}
	return same == 1
}

// replaceTokens is POST /-/token {"tokens":["old","new"]}.
func (s *Server) replaceTokens(raw []byte) (any, error) {
	var in struct {
		Tokens []string `json:"tokens"`
	}
	if err := strict(raw, &in); err != nil {
		return nil, err
	}
	if len(in.Tokens) == 0 || len(in.Tokens) > maxTokens || slices.Contains(in.Tokens, "") {
		return nil, errors.New("tokens must be 1 to 10 words")
	}
	s.tokens.now.Store(&in.Tokens)
	return map[string]int{"tokens": len(in.Tokens)}, nil
}
