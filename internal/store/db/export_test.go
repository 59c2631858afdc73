package db

import "time"

// SetWall replaces the clock that tells since when a write runs.
func (p *Pool) SetWall(now func() time.Time) { p.wall = now }
