// Package understudy defines the domain types of Understudy, a fast, permissioned, always-on stand-in for slow
// APIs.
//
// A request enters through a frontend (proxy or viewer) and passes one access gate to the mirror. The mirror
// answers from the store or asks the upstream API. Each saved change of a record becomes a numbered row in the
// store. Other packages share these types and do not import each other. This package imports only the standard
// library and has no mutable state.
package understudy

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"
)

// SetDefaults replaces a nil logger by a logger that discards everything, and a nil clock by time.Now. Pass a nil
// pointer for an argument that is not needed.
func SetDefaults(logger **slog.Logger, now *func() time.Time) {
	if logger != nil && *logger == nil {
		*logger = slog.New(slog.DiscardHandler)
	}
	if now != nil && *now == nil {
		*now = time.Now
	}
}

// Wake sends a signal through a channel with room for one, unless one is there already. It never blocks.
func Wake(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// IsClosed reports whether a channel on which nothing is sent is closed.
func IsClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// KV stores small values by name. The store implements it.
type KV interface {
	// Value returns the value of a name, or ErrNotFound.
	Value(ctx context.Context, name string) ([]byte, error)
	// ReadValues returns the values of all names that begin with prefix.
	ReadValues(ctx context.Context, prefix string) (map[string][]byte, error)
	// SetValue stores a value and replaces the former one. A nil value deletes it.
	SetValue(ctx context.Context, name string, value []byte) error
	// Change replaces a value by the result of change, which receives the present value, or nil if there is none. A nil
	// result deletes the value. No other process can change the value meanwhile. change must not use the store.
	Change(ctx context.Context, name string, change func(old []byte) (value []byte, err error)) error
}

// SharedKV is a KV of whose values several processes keep copies in memory. The store implements it.
type SharedKV interface {
	KV
	// Watch calls put with every value whose name begins with prefix, and later with every changed value, whichever
	// process changed it. A nil value was deleted. put must not use the store, also not while it waits for a lock.
	Watch(ctx context.Context, prefix string, put func(name string, value []byte) error) error
	// ChangeQuietly does what Change does, but other processes may receive the value late.
	ChangeQuietly(ctx context.Context, name string, change func(old []byte) (value []byte, err error)) error
}

// ReadValue returns the value of a name, or nil if there is none.
func ReadValue(ctx context.Context, kv KV, name string) ([]byte, error) {
	value, err := kv.Value(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return value, err
}

// ReadJSON decodes the value of a name into v. If there is no value, v is unchanged.
func ReadJSON(ctx context.Context, kv KV, name string, v any) error {
	value, err := ReadValue(ctx, kv, name)
	if value == nil || err != nil {
		return err
	}
	return json.Unmarshal(value, v)
}

// WriteJSON stores v under a name as JSON.
func WriteJSON(ctx context.Context, kv KV, name string, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return kv.SetValue(ctx, name, value)
}
