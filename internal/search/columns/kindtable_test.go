// Tables beside the records of a store, while records come, change and go.

package columns_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/search/columns"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// calls are a store's, with their table.
type calls struct {
	*testing.T
	db    *store.DB
	set   *columns.Set
	table *columns.Table
	at    time.Time // of the last save
}

// call is what of a call's body has a column.
type call struct {
	SID    string  `json:"sid"`
	Status *string `json:"status"`
	Price  *string `json:"price"`
	Start  *string `json:"start_time"`
}

func openCalls(t *testing.T) *calls {
	t.Helper()
	specs := storetest.Specs(t)
	c := &calls{T: t, db: storetest.Open(t, store.Options{Specs: specs}), at: storetest.Epoch}
	c.set = columns.NewSet(c.db, 0, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = c.set.Close() })
	c.table = c.set.Table("twilio", specs["twilio"].Kind("calls"))
	return c
}

// save saves a call; nil: it is gone.
func (c *calls) save(id string, is *call) {
	c.Helper()
	c.at = c.at.Add(time.Second)
	p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/" + id}, Kind: "calls", Shape: "calls", ID: id, Status: 404, At: c.at}
	if is != nil {
		is.SID = id
		var err error
		if p.Body, err = json.Marshal(is); err != nil {
			c.Fatal(err)
		}
		p.Status, p.Rows = 200, []understudy.Row{{ID: id, End: len(p.Body)}}
	}
	if _, err := c.db.Save(c.Context(), p); err != nil {
		c.Fatal(err)
	}
}

func (c *calls) refresh() {
	c.Helper()
	st, err := c.set.Refresh(c.Context(), nil, c.table, true)
	checktest.MustNoError(c, err, "")
	checktest.MustTrue(c, st.Complete, "st.Whole is false")
	checktest.MustTrue(c, st.Current, "st.Current is false")
}

// compare compares the cells, and tests of them, with what the records say.
func (c *calls) compare(told map[int32]int64) {
	c.Helper()
	c.refresh()
	var all []*understudy.Record
	err := c.db.Seek(c.Context(), query.RecordQuery{Source: "twilio", Kinds: []string{"calls"}}, func(h query.Hit) bool {
		all = append(all, h.Record)
		return true
	})
	if err != nil {
		c.Fatal(err)
	}
	c.table.Lock()
	defer c.table.Unlock()
	if n := len(slices.Collect(c.table.VisitRows)); n != len(all) || len(told) != n {
		c.Fatalf("%d rows and %d told of, of %d records", n, len(told), len(all))
	}
	status, price, start := c.table.Column("status"), c.table.Column("price"), c.table.Column("start_time")
	zero, _ := query.ParseDecimal("0")
	noon := storetest.Epoch.Unix()
	busy := c.table.Test("status", query.OneOf{Texts: []string{"busy"}})
	charged := c.table.Test("price", query.Range{To: &zero})
	early := c.table.Test("start_time", query.Times{{From: 1, To: noon}})
	for _, r := range all {
		var is call
		if err := json.Unmarshal(r.Body, &is); err != nil {
			c.Fatal(err)
		}
		row, ok := c.table.Row(r.Number)
		if !ok || told[row] != r.Number {
			c.Fatalf("%s has row %d, %v, told of as record %d", r.ID, row, ok, told[row])
		}
		text := ""
		if code := status.Word(row); code != 0 {
			text = status.Text(code)
		}
		checktest.Equal(c, (is.Status == nil), (text == ""), "%s: (is.Status == nil)", r.Body)
		checktest.True(c, !(is.Status != nil && text != *is.Status),
			"%s: is.Status != nil && text != *is.Status; is.Status is %v, text is %v", r.Body, is.Status, text)
		checktest.Equal(c, busy(row), (text == "busy"), "%s: busy(row)", r.Body)
		n, number, ok := price.Millionths(row)
		if number == nil {
			number = big.NewRat(n, columns.Scale)
		}
		want := new(big.Rat)
		if is.Price != nil {
			want.SetString(*is.Price)
		}
		checktest.Equal(c, ok, (is.Price != nil), "%s: ok", r.Body)
		checktest.True(c, !(ok && number.Cmp(want) != 0), "%s: ok && number.Cmp(want) != 0", r.Body)
		checktest.Equal(c, charged(row), (ok && want.Sign() <= 0), "%s: charged(row)", r.Body)
		at := int64(0)
		if is.Start != nil {
			begun, err := time.Parse(time.RFC1123Z, *is.Start)
			if err != nil {
				c.Fatal(err)
			}
			at = begun.Unix()
		}
		if start.Unix(row) != at || early(row) != (at > 0 && at < noon) {
			c.Errorf("%s: start %d, early %v", r.Body, start.Unix(row), early(row))
		}
	}
}

// rows are told of by a table.
type rows struct {
	*testing.T
	is map[int32]int64 // the record of each
}

func (r rows) RemoveRow(row int32) {
	if _, had := r.is[row]; !had {
		r.Errorf("row %d leaves and never entered", row)
	}
	delete(r.is, row)
}

func (r rows) AddRow(row int32, record *understudy.Record) { r.is[row] = record.Number }

func TestCellsAreThoseOfTheRecords(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	one := func(of ...string) *string {
		if i := rng.IntN(len(of) + 1); i < len(of) {
			return &of[i]
		}
		return nil
	}
	c, told, watch := openCalls(t), rows{t, map[int32]int64{}}, &columns.Watch{Ended: true}
	for range 12 {
		for range rng.IntN(40) {
			id := fmt.Sprintf("CA%032x", rng.IntN(60))
			if rng.IntN(12) == 0 {
				c.save(id, nil)
				continue
			}
			begun := storetest.Epoch.Add(time.Duration(rng.IntN(200)-100) * time.Minute).Format(time.RFC1123Z)
			price := one("-0.0075", "0", "12.5", "-123456789012.0000001")
			c.save(id, &call{Status: one("busy", "failed", "queued"), Price: price, Start: one(begun)})
		}
		c.refresh()
		c.table.Lock()
		if watch.Ended { // the table has begun anew: who watches it, too
			clear(told.is)
			for record, row := range c.table.VisitRecords {
				told.is[row] = record
			}
			watch = c.table.Watch(told)
		}
		c.table.Unlock()
		c.compare(told.is)
	}
}

// A value that no cell can keep is for the records to say, until it is there no longer.
func TestColumnsSayWhatTheyCannotKeep(t *testing.T) {
	t.Parallel()
	c := openCalls(t)
	free, paid := "free", "-1"
	for _, step := range []struct {
		price    *string
		readable bool
	}{{&paid, true}, {&free, false}, {&paid, true}, {&free, false}, {nil, true}} {
		c.save("CA00000000000000000000000000000001", &call{Price: step.price})
		c.refresh()
		c.table.Lock()
		readable, decided := c.table.Column("price").IsReadable(), c.table.Test("price", query.Present{}) != nil
		c.table.Unlock()
		if readable != step.readable || decided != step.readable {
			t.Errorf("readable %v, decided %v, want both %v", readable, decided, step.readable)
		}
	}
}
