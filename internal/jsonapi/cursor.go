// This file encrypts positions into cursors, which clients receive as opaque text.

package jsonapi

import (
	"context"
	"fmt"

	"understudy"
	"understudy/kit/token"
)

// LoadSealingKey returns the key with which package pkg encrypts its cursors. The first call creates and stores the key.
func LoadSealingKey(ctx context.Context, kv understudy.KV, pkg string) ([]byte, error) {
	name := pkg + "/key"
	key, err := token.Key(func() ([]byte, error) { return understudy.ReadValue(ctx, kv, name) },
		func(change func([]byte) ([]byte, error)) error { return kv.Change(ctx, name, change) })
	if err != nil {
		return nil, fmt.Errorf("%s: cursors: %w", pkg, err)
	}
	return key, nil
}

// NewCursorSealer returns a Sealer for cursors that can only be opened for the same package, source and role.
func NewCursorSealer(key []byte, pkg, source, role string) (*token.Sealer, error) {
	s, err := token.New(key, pkg+" cursor\x00"+source+"\x00"+role)
	if err != nil {
		return nil, fmt.Errorf("%s: cursors: %w", pkg, err)
	}
	return s, nil
}
