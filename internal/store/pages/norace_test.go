//go:build !race

package pages_test

const walked = 10_000
