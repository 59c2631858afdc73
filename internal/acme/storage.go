package acme

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"understudy"
	"understudy/kit/retry"
	"understudy/kit/token"
)

// prefix begins the names of values in the database, and lockPause is the pause between two attempts to get a lock.
const prefix, lockPause = "acme/", 500 * time.Millisecond

// Claims lets one of several processes on a database do something. A claim ends soon after its process. fleet.Fleet implements it.
type Claims interface {
	Claim(ctx context.Context, name string) (claimed bool, err error)
	EndClaim(ctx context.Context, name string) error
}

// Storage is a certmagic.Storage in the database. It encrypts certificates, keys, accounts and challenges.
type Storage struct {
	kv     understudy.KV
	seal   *token.Sealer
	claims Claims
	held   sync.Map // the names of the locks of this process
}

// NewStorage returns a storage that encrypts with a key. claims is nil if no other process uses the database.
func NewStorage(kv understudy.KV, key []byte, claims Claims) (*Storage, error) {
	sum := sha256.Sum256(key)
	seal, err := token.New(sum[:], "understudy acme")
	return &Storage{kv: kv, seal: seal, claims: claims}, err
}

// Store encrypts and stores a value.
func (s *Storage) Store(ctx context.Context, key string, value []byte) error {
	return s.kv.SetValue(ctx, prefix+key, s.seal.Append(nil, value))
}

// Load returns a value. A value of another key does not exist, so that it is replaced.
func (s *Storage) Load(ctx context.Context, key string) ([]byte, error) {
	sealed, err := understudy.ReadValue(ctx, s.kv, prefix+key)
	if err != nil {
		return nil, err
	}
	value, err := s.seal.Open(string(sealed), token.SizeOf(string(sealed)))
	if err != nil {
		return nil, fs.ErrNotExist
	}
	return value, nil
}

// Delete deletes a value, or all values of a folder.
func (s *Storage) Delete(ctx context.Context, key string) error {
	all, err := s.List(ctx, key, true)
	for _, name := range append(all, key) {
		if err == nil {
			err = s.kv.SetValue(ctx, prefix+name, nil)
		}
	}
	return err
}

// Exists reports whether there is a value.
func (s *Storage) Exists(ctx context.Context, key string) bool {
	_, err := s.Load(ctx, key)
	return err == nil
}

// List returns the names in a folder, or those of all values below it.
func (s *Storage) List(ctx context.Context, path string, recursive bool) (all []string, err error) {
	values, err := s.kv.ReadValues(ctx, prefix+path+"/")
	for name := range values {
		name = strings.TrimPrefix(name, prefix)
		if below, _, deeper := strings.Cut(name[len(path)+1:], "/"); deeper && !recursive {
			name = path + "/" + below
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all), err
}

// Stat describes a value.
func (s *Storage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	value, err := s.Load(ctx, key)
	return certmagic.KeyInfo{Key: key, Size: int64(len(value)), IsTerminal: true}, err
}

// Lock waits for a lock that one caller of all processes has.
func (s *Storage) Lock(ctx context.Context, name string) error {
	for {
		if locked, err := s.TryLock(ctx, name); locked || err != nil {
			return err
		}
		if err := retry.Wait(ctx, lockPause); err != nil {
			return err
		}
	}
}

// TryLock takes a lock that nobody has.
func (s *Storage) TryLock(ctx context.Context, name string) (locked bool, err error) {
	if _, isHeld := s.held.LoadOrStore(name, nil); isHeld || s.claims == nil {
		return !isHeld, nil
	}
	if locked, err = s.claims.Claim(ctx, prefix+name); !locked {
		s.held.Delete(name)
	}
	return locked, err
}

// Unlock gives a lock back.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	defer s.held.Delete(name)
	if s.claims == nil {
		return nil
	}
	return s.claims.EndClaim(ctx, prefix+name)
}
