//go:build !race

package compose_test

const raced = false
