// This file lets a single node do work that has to be done once for all nodes, such as fetching a page.

package nodes

import (
	"context"
	"database/sql/driver"

	"understudy/internal/store/db"
)

var (
	claimKey = NewStatement("INSERT INTO node_claim (key, holder) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET holder = excluded.holder "+
		"WHERE NOT EXISTS (SELECT 1 FROM node WHERE id = node_claim.holder AND alive > ", ") RETURNING 1")
	selectClaim = NewStatement("SELECT 1 FROM node_claim c JOIN node n ON n.id = c.holder WHERE c.key = ? AND n.alive > ", "")
	deleteClaim = &db.Statement{Head: "DELETE FROM node_claim WHERE key = ? AND holder = ?"}
)

// Claim claims a key for a node, which must have joined. It returns false if another live node has claimed the key. A
// claim ends with EndClaim, or when the lease of its node ends.
func (t *Table) Claim(ctx context.Context, key int64, id string) (claimed bool, err error) {
	err = t.use(ctx, t.claims, func(c db.Conn) error {
		claimed, err = db.QueryRow(c, claimKey, []driver.Value{key, id}, func([]driver.Value) {})
		return err
	})
	return claimed, db.WrapError(true, err, "claim work")
}

// IsClaimed reports whether a live node has claimed a key.
func (t *Table) IsClaimed(ctx context.Context, key int64) (claimed bool, err error) {
	err = t.use(ctx, t.claims, func(c db.Conn) error {
		claimed, err = db.QueryRow(c, selectClaim, []driver.Value{key}, func([]driver.Value) {})
		return err
	})
	return claimed, db.WrapError(false, err, "see who does work")
}

// EndClaim ends a node's claim of a key. It does not end a claim of another node.
func (t *Table) EndClaim(ctx context.Context, key int64, id string) error {
	err := t.use(ctx, t.claims, func(c db.Conn) error { return c.Execute(deleteClaim, 0, key, id) })
	return db.WrapError(true, err, "end claimed work")
}
