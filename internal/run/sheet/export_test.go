package sheet

// MachineOf is Machine of a file system.
var MachineOf = machineOf
