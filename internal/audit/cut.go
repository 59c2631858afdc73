// This file removes old entries, one file at a time.

package audit

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"understudy/kit/wal"
)

// cutInterval is the time between two searches for old entries.
const cutInterval = 24 * time.Hour

// cut removes the files in which all entries are older than a time. First it records the removal in the current
// chain, because verify would otherwise report that the chain lacks its beginning.
func (l *Log) cut(ctx context.Context, before time.Time) error {
	own, err := l.getChain()
	if err != nil {
		return err
	}
	ids, err := ListChains(l.o.Dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		c, err := own, error(nil)
		if id != own.id {
			c, err = l.o.tryOpen(id)
		}
		if c != nil && err == nil {
			err = l.cutChain(ctx, c, c == own, before)
		}
		if c != nil && c != own {
			err = errors.Join(err, c.close())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// cutChain removes the old entries of one chain. written is true if this process writes the chain. Another chain is
// removed completely if all its entries are old.
func (l *Log) cutChain(ctx context.Context, c *chain, written bool, before time.Time) error {
	first, keep := c.wal.FirstNumber(), uint64(0)
	for e, err := range c.wal.Entries(first) {
		if err != nil {
			return err
		}
		var at struct{ At time.Time }
		if err := json.Unmarshal(e.Data, &at); err != nil {
			return err
		}
		if !at.At.Before(before) {
			keep = e.Number
			break
		}
	}
	whole := keep == 0
	if whole {
		keep = c.wal.LastNumber() + 1
	}
	files, err := wal.ListFiles(filepath.Join(l.o.Dir, c.id))
	if err != nil || (len(files) < 2 || files[1] > keep) && (written || !whole) {
		return err // no file contains only old entries
	}
	body, err := l.encodeEntry(Entry{Cut: &Cut{Chain: c.id, Before: keep}})
	if err == nil {
		err = l.append(ctx, body)
	}
	if err != nil {
		return err
	}
	if written || !whole {
		return c.wal.RemoveBefore(keep)
	}
	if l.o.Heads != "" {
		err = changeHeads(l.o.Heads, func(heads map[string]*Checkpoint) { delete(heads, c.id) })
	}
	return errors.Join(err, os.RemoveAll(filepath.Join(l.o.Dir, c.id)))
}
