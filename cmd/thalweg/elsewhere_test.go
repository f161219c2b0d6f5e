package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWordsOfOtherPrograms: what is proposed for the command of another program is there, with its flags.
func TestWordsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	commands := flagsOfCommands(t)
	proposed := regexp.MustCompile("`thalweg ([^`]*)`")
	for word, hint := range elsewhere {
		assert.Nil(t, commands[word], "%s is a command itself", word)
		found := proposed.FindAllStringSubmatch(hint, -1)
		require.NotEmpty(t, found, hint)
		for _, m := range found {
			words := strings.Fields(m[1])
			command := words[0]
			if len(words) > 1 && commands[command+" "+words[1]] != nil {
				command += " " + words[1]
			}
			if assert.NotNil(t, commands[command], "%s: there is no command %s", word, command) {
				checkFlags(t, commands[command], words, hint)
			}
		}
	}
	for _, word := range strings.Fields(
		"status logs cancel delete preview tables ui ps kill rm ls list start submit deploy plan apply build compile " +
			"docs clean head query jobs web " +
			"server dashboard abort undo rollback export import watch tail") {
		assert.NotEmpty(t, elsewhere[word], word)
	}
}
