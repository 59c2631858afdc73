//go:build !race

package jobs_test

const crowded = 1
