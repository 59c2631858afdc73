// This file stores each series as one row of a table, and each sample as one row of another table.

// Package series stores samples of numbers over time.
package series

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"understudy"
	"understudy/internal/store/db"
)

// maxValue is the maximum length of a number's text in bytes.
const maxValue = 64

var (
	insertSeries = &db.Statement{Head: "INSERT INTO series (source, kind, field) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"}
	selectSeries = &db.Statement{Head: "SELECT number FROM series WHERE source = ? AND kind = ? AND field = ?"}
	insertSample = &db.Statement{Head: "INSERT INTO sample (series, at, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"}
	deleteOldest = &db.Statement{Head: "DELETE FROM sample WHERE series = ?1 AND at <= " +
		"(SELECT at FROM sample WHERE series = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?2)"}
	selectSamples = &db.Statement{Head: "SELECT m.at, m.value FROM series s JOIN sample m ON m.series = s.number " +
		"WHERE s.source = ? AND s.kind = ? AND s.field = ? ORDER BY m.at"}
	deleteSamples = &db.Statement{Head: "DELETE FROM sample WHERE series IN " +
		"(SELECT number FROM series WHERE source = ? AND kind = ?) RETURNING at"}
	deleteSeries = &db.Statement{Head: "DELETE FROM series WHERE source = ? AND kind = ?"}
)

// Points stores the samples of series. It is safe for concurrent use.
type Points struct{ pool *db.Pool }

// New returns the series of a database.
func New(pool *db.Pool) *Points { return &Points{pool} }

// AddSamples stores samples. Of samples with the same time the first is kept. If a series has more than
// understudy.MaxSamples, the oldest are deleted. Errors: ErrInvalid for a number that is empty or above 64
// bytes or a time before 1970, ErrNotStored. After an error nothing is stored.
func (p *Points) AddSamples(ctx context.Context, s understudy.Series, samples ...understudy.Sample) error {
	for _, one := range samples {
		if one.Value == "" || len(one.Value) > maxValue || one.At.Unix() <= 0 {
			err := fmt.Errorf("%w: a sample has a time and a number of at most %d bytes", understudy.ErrInvalid, maxValue)
			return db.WrapError(true, err, "sample of %s", s)
		}
	}
	err := p.pool.Change(ctx, func(c db.Conn) error {
		if err := c.Execute(insertSeries, 0, s.Source, s.Kind, s.Field); err != nil {
			return err
		}
		number := int64(0)
		_, err := db.QueryRow(c, selectSeries, seriesArgs(s), func(r []driver.Value) { number = r[0].(int64) })
		if err != nil {
			return err
		}
		for _, one := range samples {
			if err := c.Execute(insertSample, 0, number, one.At.UnixNano(), one.Value); err != nil {
				return err
			}
		}
		return c.Execute(deleteOldest, 0, number, int64(understudy.MaxSamples))
	})
	return db.WrapError(true, err, "sample of %s", s)
}

func seriesArgs(s understudy.Series) []driver.Value { return []driver.Value{s.Source, s.Kind, s.Field} }

// ReadSamples returns the samples of a series, oldest first. An unknown series has none.
func (p *Points) ReadSamples(ctx context.Context, s understudy.Series) (all []understudy.Sample, err error) {
	err = p.pool.Read(ctx, func(c db.Conn) error {
		return db.VisitRows(c, selectSamples, seriesArgs(s), func(r []driver.Value) {
			all = append(all, understudy.Sample{At: time.Unix(0, r[0].(int64)).UTC(), Value: r[1].(string)})
		})
	})
	return all, db.WrapError(false, err, "samples of %s", s)
}

// ForgetSamples deletes the series of a kind and returns how many samples they had.
func (p *Points) ForgetSamples(ctx context.Context, source, kind string) (gone int, err error) {
	err = p.pool.ReleaseChange(ctx, func(c db.Conn) error {
		gone = 0
		err := c.Query(deleteSamples, 0, []driver.Value{source, kind}, func([]driver.Value) error { gone++; return nil })
		if err != nil {
			return err
		}
		return c.Execute(deleteSeries, 0, source, kind)
	})
	return gone, db.WrapError(true, err, "forget the series of %s %s", source, kind)
}
