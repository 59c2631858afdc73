// Cursor: positions that callers get as sealed texts.

package jsonapi

import (
	"context"
	"fmt"

	"understudy"
	"understudy/kit/token"
)

// SealingKey returns the key that a package seals with. It is made at the first use, and kept under the package's name.
func SealingKey(ctx context.Context, kv understudy.KV, pkg string) ([]byte, error) {
	name := pkg + "/key"
	key, err := token.Key(func() ([]byte, error) { return understudy.ReadValue(ctx, kv, name) },
		func(key []byte) error { return kv.SetValue(ctx, name, key) })
	if err != nil {
		return nil, fmt.Errorf("%s: cursors: %w", pkg, err)
	}
	return key, nil
}

// Cursors returns what seals a package's positions in a source for a role. No other role can open them.
func Cursors(key []byte, pkg, source, role string) (*token.Sealer, error) {
	s, err := token.New(key, pkg+" cursor\x00"+source+"\x00"+role)
	if err != nil {
		return nil, fmt.Errorf("%s: cursors: %w", pkg, err)
	}
	return s, nil
}
