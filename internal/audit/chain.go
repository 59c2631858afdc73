// This file writes a chain: the lines of one process, each with the hash of the line before.

package audit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/datadir"
	"understudy/internal/smallfile"
	"understudy/kit/pidfile"
	"understudy/kit/wal"
)

// chain is the chain that this process writes.
type chain struct {
	o    *Options
	id   string
	wal  *wal.Log
	lock *os.File
	head [sha256.Size]byte // the hash of the newest line; used only within calls of the WAL for lines

	signed       atomic.Uint64 // the line number of the last checkpoint
	signedAt     atomic.Pointer[time.Time]
	damagedChain string // the name of the damaged chain in whose place this chain was begun
}

// errHeadMismatch means that the lines of a chain do not match its signed head.
var errHeadMismatch = errors.New("it differs from what was signed")

// openChain continues the newest chain that no other process writes. If there is none, it begins a new chain. A
// chain that does not match its signed head is left unchanged, so that verify can report it.
func openChain(o *Options) (*chain, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	ids, err := ListChains(o.Dir)
	if err != nil {
		return nil, err
	}
	heads, err := readHeads(o.Heads)
	if err != nil {
		return nil, err
	}
	left := ""
	for _, id := range slices.Backward(ids) {
		c, err := o.tryOpen(id)
		if c == nil && err == nil {
			continue // another process is writing this chain
		}
		if err == nil {
			err = c.resume(heads[id])
		}
		if err == nil {
			err = c.start()
		}
		if err == nil {
			return c, nil
		}
		if c != nil {
			err = errors.Join(err, c.close())
		}
		if !errors.Is(err, wal.ErrDamaged) && !errors.Is(err, errHeadMismatch) {
			return nil, err
		}
		o.Logger.Error("audit: a chain is damaged, so a new chain was begun; run understudy audit verify to see the damage", "chain", id,
			"err", err)
		left = id
		break // all chains after this one are older
	}
	c, err := o.begin()
	if err == nil {
		c.damagedChain = left
	}
	return c, err
}

// idLayout is the layout of the time at the beginning of a chain's name. Names in this layout sort by time.
const idLayout = "20060102T150405Z"

// begin creates a new chain.
func (o *Options) begin() (*chain, error) {
	random := [4]byte{}
	_, _ = rand.Read(random[:]) // rand.Read never fails
	c, err := o.tryOpen(o.Now().UTC().Format(idLayout) + "-" + hex.EncodeToString(random[:]))
	if err == nil && c == nil {
		err = errors.New("audit: another process has locked a new chain")
	}
	if err != nil {
		return nil, err
	}
	if err := c.start(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// start writes the first line of an empty chain, and a checkpoint.
func (c *chain) start() error {
	ctx := context.Background() // many callers share the chain, so no caller's context applies
	if c.wal.LastNumber() == 0 {
		body, err := encodeLine(Entry{At: c.o.Now(), Begin: &Begin{Key: c.o.Key.PublicKey()}})
		if err != nil {
			return err
		}
		if _, err := c.append(ctx, body); err != nil {
			return err
		}
	}
	return c.writeCheckpoint(ctx)
}

// tryOpen opens a chain. It returns nil if another process has the chain open.
func (o *Options) tryOpen(id string) (*chain, error) {
	dir := filepath.Join(o.Dir, id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	held, err := pidfile.TryLock(lock)
	if err != nil {
		_ = lock.Close() // its error is ignored, because err is the cause
		if held {
			return nil, nil
		}
		return nil, err
	}
	w, err := wal.Open(dir, wal.Options{SegmentSize: o.SegmentSize})
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &chain{o: o, id: id, wal: w, lock: lock}, nil
}

// resume reads the head of an existing chain. It returns an error if signed lines are missing in the chain.
func (c *chain) resume(signed *Checkpoint) error {
	last := c.wal.LastNumber()
	if signed != nil && signed.Count > last {
		return fmt.Errorf("audit: chain %s has %d lines, but %d lines were signed: %w", c.id, last, signed.Count, errHeadMismatch)
	}
	from := max(last, 1)
	if signed != nil {
		from = signed.Count
	}
	for e, err := range c.wal.Entries(from) {
		if err != nil {
			return err
		}
		c.head = sha256.Sum256(e.Data)
		if signed != nil && e.Number == signed.Count && hex.EncodeToString(c.head[:]) != signed.Head {
			return fmt.Errorf("audit: chain %s: line %d: %w", c.id, e.Number, errHeadMismatch)
		}
	}
	return nil
}

// append adds a line and returns its number when the line is durable.
func (c *chain) append(ctx context.Context, body []byte) (uint64, error) {
	return c.wal.AppendFunc(ctx, func(number uint64) []byte {
		line := placeLine(c.id, number, c.head, body)
		c.head = sha256.Sum256(line)
		return line
	})
}

// writeCheckpoint signs the head, unless the head is already a checkpoint.
func (c *chain) writeCheckpoint(ctx context.Context) error {
	if last := c.wal.LastNumber(); last == 0 || last == c.signed.Load() {
		return nil
	}
	var failed error
	var signed Checkpoint
	number, err := c.wal.AppendFunc(ctx, func(number uint64) []byte {
		signed = Checkpoint{Chain: c.id, Count: number - 1, Head: hex.EncodeToString(c.head[:]), At: c.o.Now().UTC()}
		c.o.Key.sign(&signed)
		body, err := encodeLine(Entry{At: signed.At, Checkpoint: &signed})
		if failed = err; err != nil {
			return nil
		}
		line := placeLine(c.id, number, c.head, body)
		c.head = sha256.Sum256(line)
		return line
	})
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	c.signed.Store(number)
	c.signedAt.Store(&signed.At)
	if err := writeHead(c.o.Heads, &signed); err != nil {
		c.o.Logger.Error("audit: the newest checkpoint could not be written to the file of checkpoints; it is only in the log", "file",
			c.o.Heads, "err", err)
	}
	return nil
}

// close closes the chain and releases its lock.
func (c *chain) close() error { return errors.Join(c.wal.Close(), c.lock.Close()) }

// ListChains returns the names of the chains in a folder, the oldest first. If the folder is missing, there are no chains.
func ListChains(dir string) ([]string, error) {
	all, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, e := range all {
		if e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids, err
}

// maxHeads is the maximum size in bytes of the file with the newest checkpoints. The checkpoint of a chain needs a
// few hundred bytes.
const maxHeads = 64 << 20

// readHeads reads the newest checkpoint of each chain. It returns an error if a checkpoint is missing, is
// stored under another chain or has no valid signature.
func readHeads(path string) (map[string]*Checkpoint, error) {
	heads := map[string]*Checkpoint{}
	data, err := smallfile.Read(path, maxHeads)
	switch {
	case path == "", errors.Is(err, os.ErrNotExist):
		return heads, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(data, &heads); err != nil {
		return nil, newHeadsError(path, "it is not a list of checkpoints")
	}
	if heads == nil {
		return nil, newHeadsError(path, "it is null")
	}
	for id, head := range heads {
		if head == nil || head.Chain != id || !head.isSigned() {
			return nil, newHeadsError(path, "the checkpoint of chain "+understudy.Clip(id)+" differs from what was signed")
		}
	}
	return heads, nil
}

func newHeadsError(path, why string) error {
	return fmt.Errorf("audit: %s is damaged: %s; restore it from a backup. If you remove it, the server creates a new file, and "+
		"nobody can tell whether the end of an earlier chain is missing", path, why)
}

// writeHead replaces the newest checkpoint of a chain in the file of checkpoints.
func writeHead(path string, head *Checkpoint) error {
	if path == "" {
		return nil
	}
	return changeHeads(path, func(heads map[string]*Checkpoint) { heads[head.Chain] = head })
}

func changeHeads(path string, change func(map[string]*Checkpoint)) error {
	heads, err := readHeads(path)
	if err != nil {
		return err
	}
	change(heads)
	data, err := json.MarshalIndent(heads, "", " ")
	if err != nil {
		return err
	}
	return datadir.WriteFile(path, append(data, '\n'))
}
