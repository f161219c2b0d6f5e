package infer

import (
	"bytes"
	"time"
)

// layouts of days and moments that are tried; where two fit, see Column.chooseTime.
func layouts() []string {
	return []string{
		"2006-01-02", "2006-01-02 15:04:05", "2006-01-02 15:04",
		"2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05-0700", "2006-01-02T15:04",
		"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05-0700", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05-07",
		"2006-01-02 15:04:05 UTC",
		"2006/01/02", "2006/01/02 15:04:05", "2006/01/02 15:04",
		"01/02/2006", "02/01/2006", "01/02/2006 15:04:05", "02/01/2006 15:04:05", "01/02/2006 15:04",
		"02/01/2006 15:04",
		"1/2/2006", "2/1/2006", "1/2/2006 15:04", "2/1/2006 15:04", "1/2/2006 15:04:05", "2/1/2006 15:04:05",
		"1/2/2006 3:04:05 PM", "1/2/2006 3:04 PM",
		"02.01.2006", "02.01.2006 15:04:05", "02.01.2006 15:04", "2.1.2006", "2.1.2006 15:04", "2.1.2006 15:04:05",
		"02-01-2006", "01-02-2006", "02-01-2006 15:04:05", "01-02-2006 15:04:05",
		"02-Jan-2006", "02 Jan 2006", "2 Jan 2006", "Jan 2, 2006", "January 2, 2006", "2 January 2006", "02-Jan-06",
	}
}

// dayFirst tells of two layouts that differ in that alone which has the day first.
func dayFirst(layout string) bool {
	return len(layout) > 0 && layout[0] != '1' && layout[:min(len(layout), 2)] != "01"
}

// mayBeTime tells texts that no layout reads without trying any.
func mayBeTime(text []byte) bool {
	const charsMin, charsMax = 6, 40
	if len(text) < charsMin || len(text) > charsMax {
		return false
	}
	c := text[0]
	if (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
		return false
	}
	return bytes.ContainsAny(text[1:], "-/. ")
}

// timeText reads a text by a layout, as Go does, and counts the digits behind its second.
func timeText(text []byte, layout string) (fraction int, ok bool) {
	if _, err := time.Parse(layout, string(text)); err != nil {
		return 0, false
	}
	if colon := bytes.IndexByte(text, ':'); colon >= 0 {
		if i := bytes.LastIndexAny(text, ".,"); i > colon {
			fraction = countDigits(text[i+1:])
		}
	}
	return fraction, true
}
