// Package search turns words into record lists, as a role may see them.
package search
