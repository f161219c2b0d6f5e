package view

import (
	"time"

	"thalweg/internal/run/sheet"
)

// Shapes of time sheets.
type (
	TimeSheet   = sheet.Sheet
	SheetsTotal = sheet.Total
)

// RunWorkers has the time sheets of a run, who came first before others.
type RunWorkers struct {
	Workspace string       `json:"workspace"`
	Run       int64        `json:"run"`
	Total     *SheetsTotal `json:"total,omitempty" doc:"Sums; none: there are no sheets."`
	Workers   []TimeSheet  `json:"workers"`
}

// SlotShare is a part of the time of slots.
type SlotShare struct {
	Text string // for people
	Time time.Duration
}

// shareTexts explains the shares to people.
var shareTexts = [sheet.Count]string{
	sheet.Work: "work", sheet.Parts: "parts on their way", sheet.Claims: "claims", sheet.Refused: "claims refused",
	sheet.Commits: "commits", sheet.Unoffered: "free batches not heard of", sheet.Nothing: "all batches were taken",
	sheet.Handover: "nothing to work on", sheet.Other: "lost attempts, waits for memory or a turn",
}

// SharesOf lists what the time of a worker's slots went to.
func SharesOf(s TimeSheet) []SlotShare {
	var all []SlotShare
	for of := range sheet.Count {
		all = append(all, SlotShare{shareTexts[of], s.Time(of)})
	}
	return all
}

// ShareNames lists the shares of slots' time: their names, and the texts that explain them to people.
func ShareNames() (names, texts []string) { return sheet.Names(), shareTexts[:] }
