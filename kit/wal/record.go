// A record is an entry as it stands in a file.

package wal

import (
	"encoding/binary"
	"hash/crc32"
)

// A record is the length of the data, a CRC32C of all else, the number of the entry,
// all little endian, and the data. The number is within the checksum: a whole record
// in a wrong place is not taken for the right one.
const recordHead = 4 + 4 + 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendRecord(to []byte, number uint64, data []byte) []byte {
	at := len(to)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(data)))
	to = append(to, 0, 0, 0, 0)
	to = binary.LittleEndian.AppendUint64(to, number)
	to = append(to, data...)
	binary.LittleEndian.PutUint32(to[at+4:], sum(to[at:]))
	return to
}

// sum is the checksum of a record: of all but itself.
func sum(record []byte) uint32 {
	return crc32.Update(crc32.Checksum(record[:4], castagnoli), castagnoli, record[8:])
}

// sizeOf is how long the record is that begins here, 0 when none does.
func sizeOf(head []byte, limit int64) int64 {
	n := int64(binary.LittleEndian.Uint32(head))
	if n == 0 || n > limit {
		return 0
	}
	return recordHead + n
}

// valid reports whether the bytes are the whole record of an entry.
func valid(record []byte, number uint64) bool {
	return binary.LittleEndian.Uint32(record[4:]) == sum(record) && binary.LittleEndian.Uint64(record[8:]) == number
}
