package price

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheBookHasASourceForEachLine(t *testing.T) {
	t.Parallel()
	book, err := Published()
	require.NoError(t, err)
	require.Len(t, book.Machines(), 39)
	former, err := Edition("2024")
	require.NoError(t, err)
	require.Len(t, former.Machines(), 39)
	others := 0
	for _, b := range []*Book{book, former} {
		for _, name := range b.Machines() {
			line, ok := b.Find(name)
			require.True(t, ok)
			require.Positive(t, line.PerHour, name)
			require.Positive(t, line.Cores, name)
			require.EqualValues(t, 2<<30, line.MemoryBytes/int64(line.Cores), name)
			require.Equal(t, "us-east-1", line.Region, name)
			require.Regexp(t, dateText, line.Date, name)
			require.Contains(t, line.Source, "Capillaries", name)
			if latest, _ := book.Find(name); latest != line {
				others++
			}
		}
	}
	require.Equal(t, 5, others)
	line, _ := book.Find("c8g.medium")
	require.Equal(t, "$0.03988", line.PerHour.Text(5))
	line, _ = former.Find("c7g.4xlarge")
	require.Equal(t, Line{"c7g.4xlarge", 16, 32 << 30, "arm64", false, 578_100, "us-east-1", "2024-08-10",
		"Capillaries note of 2024-08-10: the prices that its sums bear"}, line)
	_, ok := book.Find("c7g.metal")
	require.False(t, ok)
	_, err = Edition("1999")
	require.ErrorContains(t, err, "1999")
}

func TestMoneyDoesNotDrift(t *testing.T) {
	t.Parallel()
	var sum Money
	price, err := Parse("0.1")
	require.NoError(t, err)
	for range 10 {
		sum += price
	}
	require.Equal(t, Dollar, sum)
	require.Equal(t, Money(1), Money(3600).For(time.Second))
	require.Equal(t, Money(1), Money(1800).For(time.Second), "half away from zero")
	require.Equal(t, Money(0), Money(1799).For(time.Second))
	require.Equal(t, Money(-1), Money(-1800).For(time.Second))
	require.Equal(t, Money(math.MaxInt64), Money(math.MaxInt64).For(1000*time.Hour))
	require.Equal(t, Money(math.MinInt64), Money(math.MinInt64).Times(3))
	for text, want := range map[string]string{"0.005": "$0.01", "0.004999": "$0.00", "14.0053": "$14.01", "7": "$7.00"} {
		m, err := Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, m.Text(2))
	}
	for m, want := range map[Money]string{0: "$0.00", 3: "$0.000003", 12: "$0.000012", 181: "$0.00018", 5_106: "$0.0051",
		-5_106: "-$0.0051", 10_000: "$0.010", 99_999: "$0.100", 100_000: "$0.10", 1_450_000: "$1.45",
		math.MinInt64: "-$9223372036854.78"} {
		require.Equal(t, want, m.String(), int64(m))
	}
	require.Equal(t, "-$0.50", (-Dollar / 2).String())
	require.Equal(t, "$2", (Dollar + Dollar/2).Text(0))
	require.Equal(t, "-$9223372036854.775808", Money(math.MinInt64).Text(6))
	for _, m := range []Money{0, 1, -39_880, 578_100, Dollar, math.MaxInt64} {
		text, err := json.Marshal(m)
		require.NoError(t, err)
		var back Money
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, m, back, string(text))
	}
}

func TestFilesOfPricesAddAndReplace(t *testing.T) {
	t.Parallel()
	book, err := Published()
	require.NoError(t, err)
	ours, diags := Read("prices.yaml", `version: 1
date: 2026-11-01
source: our contract
machines:
  c7g.large: {cores: 2, memory: 4GB, usd_per_hour: 0.061, region: eu-central-1}
  rack-16: {cores: 16, usd_per_hour: 0, date: "2026", source: written off, nvme: true}
`)
	require.NoError(t, diags.Err())
	both := book.With(ours)
	require.Len(t, both.Machines(), 40)
	line, _ := both.Find("c7g.large")
	require.Equal(t, Line{"c7g.large", 2, 4 << 30, "", false, 61_000, "eu-central-1", "2026-11-01", "our contract"}, line)
	line, _ = both.Find("rack-16")
	require.Equal(t, Line{"rack-16", 16, 0, "", true, 0, "", "2026", "written off"}, line)
	line, _ = book.Find("c7g.large")
	require.Equal(t, Money(72_500), line.PerHour, "the book itself stays")
}

func TestFilesOfPricesAreReadStrictly(t *testing.T) {
	t.Parallel()
	head := "version: 1\ndate: 2026-11-01\nsource: us\nmachines:\n"
	machines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "  m%d: {usd_per_hour: 1}\n", i)
		}
		return head + b.String()
	}
	for text, want := range map[string]string{
		"":                                                             "no documents in stream",
		"[1]":                                                          "is a map, not a list",
		"version: 2\nmachines: {}\n":                                   `p.yaml:1:10: "2" is not a whole number from 1 to 1`,
		"machines: {a: {usd_per_hour: 1}}":                             "the version is missing",
		"version: 1\n":                                                 "there are no machines",
		head + "  a: 3\n":                                              "is a map, not a number",
		head + "  a: {usd_per_hour: .nan}\n":                           `".nan" is not a price`,
		head + "  a: {usd_per_hour: -1}\n":                             `p.yaml:5:21: "-1" is not a price`,
		head + "  a: {usd_per_hour: .inf}\n":                           "is not a price",
		head + "  a: {usd_per_hour: 1e3}\n":                            "is not a price",
		head + "  a: {usd_per_hour: 1.0000001}":                        "is not a price",
		head + "  a: {usd_per_hour: 100000.01}":                        "more than $100000 an hour",
		head + "  a: {usd_per_hour: 99999999999999999999}":             "is not a price",
		head + "  a: {usd_per_hour: [1]}":                              "not a list",
		head + "  a: {usd_per_hour: null}":                             "not null",
		head + "  a: {cores: 2}":                                       "has no usd_per_hour",
		head + "  a: {usd_per_hour: 1, cores: 0}":                      "from 1 to 65536",
		head + "  a: {usd_per_hour: 1, cores: .nan}":                   "is not a whole number",
		head + "  a: {usd_per_hour: 1, memory: -4GB}":                  "is not a size",
		head + "  a: {usd_per_hour: 1, prise: 2}":                      `unknown key "prise"`,
		head + "  a: {usd_per_hour: 1, date: 1.11.2026}":               "is not a date",
		head + "  a: {usd_per_hour: 1, date: 2026-02-29}":              "is not a date",
		head + "  a: {usd_per_hour: 1, source: \"a\\nb\"}":             "is no text of",
		head + "  a: {usd_per_hour: 1}\n  a: {usd_per_hour: 2}\n":      "twice",
		"version: 1\ndate: 2026\nmachines: {a: {usd_per_hour: 1}}":     "has no source",
		"version: 1\nsource: me\nmachines: {a: {usd_per_hour: 1}}":     "has no date",
		head + "  " + strings.Repeat("x", 201) + ": {usd_per_hour: 1}": "is not the name of a machine",
		"currency: EUR\n" + head + "  a: {usd_per_hour: 1}":            `"EUR" is not a currency`,
		machines(MachinesMax + 1):                                      "the most are 10000",
		strings.Repeat("#", FileBytesMax+1):                            "at most 1 MiB",
	} {
		book, diags := Read("p.yaml", text)
		assert.Nil(t, book)
		assert.ErrorContains(t, diags.Err(), want, text[:min(len(text), 200)])
	}
	book, diags := Read("p.yaml", machines(MachinesMax))
	require.NoError(t, diags.Err())
	require.Len(t, book.Machines(), MachinesMax)
}
