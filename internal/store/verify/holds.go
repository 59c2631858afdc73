// This file searches for texts in the whole database, in plain columns and in packed ones.

package verify

import (
	"bytes"
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"slices"

	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/pages"
	"understudy/internal/store/records"
)

// FindTexts searches for texts in everything that the database holds: every column of every table as stored,
// and every body and page unpacked. It returns where each text was found ("block 7", "table kv"), at most
// MaxProblems places. It reads the whole database, but not the free bytes of the file.
func (d *Verifier) FindTexts(ctx context.Context, texts ...string) (places []string, err error) {
	err = d.pool.Read(ctx, func(c db.Conn) error {
		h := &holding{db: d, c: c, ctx: ctx, texts: texts, blocks: d.records.Open(c)}
		if err := h.searchTables(); err != nil {
			return err
		}
		err := h.searchPacked()
		places = h.places
		return err
	})
	return places, db.WrapError(false, err, "look for texts in %s", d.pool.Engine.Name())
}

// holding is the state of one search.
type holding struct {
	db     *Verifier
	c      db.Conn
	ctx    context.Context
	texts  []string
	places []string
	blocks *records.Blocks
}

func (h *holding) look(data []byte, where string, args ...any) {
	for _, text := range h.texts {
		if len(h.places) < MaxProblems && bytes.Contains(data, []byte(text)) {
			h.places = append(h.places, fmt.Sprintf(where, args...)+": "+text)
		}
	}
}

// searchTables searches the columns of all tables as they are stored.
func (h *holding) searchTables() error {
	names, err := h.db.pool.Engine.ListTables(h.c)
	for _, name := range names {
		if err == nil {
			err = h.c.QueryOnce(`SELECT * FROM "`+name+`"`, nil, func(r []driver.Value) error {
				for _, v := range r {
					switch v := v.(type) {
					case string:
						h.look([]byte(v), "table %s", name)
					case []byte:
						h.look(v, "table %s", name)
					}
				}
				return db.CheckContext(h.ctx)
			})
		}
	}
	return err
}

// searchPacked searches the blocks and pages after unpacking them.
func (h *holding) searchPacked() error {
	type block struct{ Number, count int64 }
	var all []block
	err := h.c.QueryOnce("SELECT number, count FROM block ORDER BY number", nil, func(r []driver.Value) error {
		all = append(all, block{r[0].(int64), r[1].(int64)})
		return nil
	})
	for _, b := range all {
		for place := range b.count {
			if err != nil {
				return err
			}
			var e *codec.Entry
			if e, err = h.blocks.ReadEntry(b.Number*codec.PerBlock + place); err == nil {
				h.look(slices.Concat(e.Body, []byte("\n"+e.ID+"\n"+e.Parent)), "block %d", b.Number)
				err = db.CheckContext(h.ctx)
			}
		}
	}
	if err != nil {
		return err
	}
	return h.db.pages.VisitAfter(h.c, pages.Scope{}, -1, math.MaxInt32, func(number int64, sk *codec.Skeleton) error {
		h.look(slices.Concat([]byte(sk.URI+"\n"+sk.ID+"\n"+sk.Next+"\n"), sk.Outside), "page %d", number)
		return nil
	})
}
