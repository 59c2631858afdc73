// Values: what packages remember, in small.

package understudy

import (
	"context"
	"encoding/json"
	"errors"
)

// KV keeps small values under names. The store implements it.
type KV interface {
	// Value returns the value under a name; ErrNotFound without one.
	Value(ctx context.Context, name string) ([]byte, error)
	// Values returns the values whose names begin with prefix.
	ReadValues(ctx context.Context, prefix string) (map[string][]byte, error)
	// SetValue keeps a value in place of the former one; nil removes it.
	SetValue(ctx context.Context, name string, value []byte) error
}

// ReadValue returns the value under a name, nil without one.
func ReadValue(ctx context.Context, kv KV, name string) ([]byte, error) {
	value, err := kv.Value(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return value, err
}

// ReadJSON reads the value under a name into v. Without a value v stays as it is.
func ReadJSON(ctx context.Context, kv KV, name string, v any) error {
	value, err := ReadValue(ctx, kv, name)
	if value == nil || err != nil {
		return err
	}
	return json.Unmarshal(value, v)
}

// WriteJSON keeps v under a name.
func WriteJSON(ctx context.Context, kv KV, name string, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return kv.SetValue(ctx, name, value)
}
