# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ringway_global_optspecs
    string join \n json h/help V/version
end

function __fish_ringway_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_ringway_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_ringway_using_subcommand
    set -l cmd (__fish_ringway_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c ringway -n "__fish_ringway_needs_command" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringway -n "__fish_ringway_needs_command" -s V -l version -d 'Print version'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "gen" -d 'Send test frames, or those of a capture file'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "replay" -d 'Send capture files, each frame at its time'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "recv" -d 'Count what arrives; verify, print or record it'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "capture" -d 'Record what ports receive into capture files, or print it'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "bridge" -d 'Forward between two ports, both ways'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "lb" -d 'Share the packets of a port out over others'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "ping" -d 'Measure round-trip times to a `ringway pong`'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "pong" -d 'Answer `ringway ping`'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "shape" -d 'Emulate a link between two ports: bandwidth, delay, loss'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "switch" -d 'Make, show and change VALE switches'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "vm" -d 'Virtual machines on switches'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "filter" -d 'Show and change which frames the ports of interfaces get'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "action" -d 'Show and change action programs, which decide where frames go'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "queue" -d 'Add and remove receive queues of the open port of an interface'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "steer" -d 'Direct only some flows to a receive queue of a NIC'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "ports" -d 'Show all ports'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "top" -d 'Show the traffic of ports, switches and rings, live'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "metrics" -d 'Print or serve what is counted and measured, for Prometheus'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "log" -d 'Show the daemon\'s log: what was set up, what was refused, what has gone'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "doctor" -d 'Say what works on this machine, what does not, and what to do about it'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "run" -d 'Run a netmap program, unchanged, on Ringway'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "schema" -d 'Print the JSON schema of what --json prints'
complete -c ringway -n "__fish_ringway_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand gen" -s n -l count -d 'End after so many frames: 1000, 10k, 1.5M' -r
complete -c ringway -n "__fish_ringway_using_subcommand gen" -s r -l rate -d 'Send no faster: 1M or 1Mpps for packets, 10Gbps for bits a second' -r
complete -c ringway -n "__fish_ringway_using_subcommand gen" -s b -l burst -d 'Frames handed over in one piece [default: 256, or what --rate allows in a millisecond]' -r
complete -c ringway -n "__fish_ringway_using_subcommand gen" -s s -l size -d 'Frame size in bytes without CRC, or a range that is stepped through (16 to 65536) [default: 60, or 78 with IPv6]' -r
complete -c ringway -n "__fish_ringway_using_subcommand gen" -l src -d 'Source address and UDP port, or a range of them, stepped through packet by packet' -r
complete -c ringway -n "__fish_ringway_using_subcommand gen" -l dst -d 'Destination address and UDP port, or a range; steps when the source is through its range [default: 10.1.0.1:1234, or fd01::1 with IPv6]' -r
complete -c ringway -n "__fish_ringway_using_subcommand gen" -l src-mac -d 'Source MAC address [default: made from the stream number]' -r
complete -c ringway -n "__fish_ringway_using_subcommand gen" -l dst-mac -d 'Destination MAC address' -r
complete -c ringway -n "__fish_ringway_using_subcommand gen" -l stream -d 'Number that tells this generator from others at the receiver [default: the process id]' -r
complete -c ringway -n "__fish_ringway_using_subcommand gen" -l pcap -d 'Send the frames of a pcap or pcapng file, as they are; once, unless --count or --duration says otherwise' -r -F
complete -c ringway -n "__fish_ringway_using_subcommand gen" -s d -l duration -d 'End after this time: 10s, 200ms, 2m [default: run until interrupted]' -r
complete -c ringway -n "__fish_ringway_using_subcommand gen" -l force -d 'Take an interface although it carries the machine\'s default route, or your own connection'
complete -c ringway -n "__fish_ringway_using_subcommand gen" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand gen" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand replay" -l order -d 'How several files follow each other' -r -f -a "sequence\t'One file after the other'
start\t'All files from the beginning, by the time since each file\'s first frame'
time\t'By the times that the frames were recorded at'"
complete -c ringway -n "__fish_ringway_using_subcommand replay" -l speed -d 'So many times as fast as recorded; 0: as fast as the port takes it [default: 1]' -r
complete -c ringway -n "__fish_ringway_using_subcommand replay" -l max-gap -d 'The longest pause between two frames; what is longer in the file is cut to it: 1s, 200ms' -r
complete -c ringway -n "__fish_ringway_using_subcommand replay" -s r -l rate -d 'Send at a rate instead: 1M or 1Mpps for packets, 10Gbps for bits a second' -r
complete -c ringway -n "__fish_ringway_using_subcommand replay" -s l -l loop -d 'Play everything so many times; 0: for ever' -r
complete -c ringway -n "__fish_ringway_using_subcommand replay" -s n -l count -d 'End after so many frames: 1000, 10k, 1.5M' -r
complete -c ringway -n "__fish_ringway_using_subcommand replay" -s b -l burst -d 'Frames handed over in one piece, at most [default: 256]' -r
complete -c ringway -n "__fish_ringway_using_subcommand replay" -s d -l duration -d 'End after this time: 10s, 200ms, 2m [default: run until interrupted]' -r
complete -c ringway -n "__fish_ringway_using_subcommand replay" -l force -d 'Take an interface although it carries the machine\'s default route, or your own connection'
complete -c ringway -n "__fish_ringway_using_subcommand replay" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand replay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringway -n "__fish_ringway_using_subcommand recv" -s n -l count -d 'End after so many frames: 1000, 10k, 1.5M' -r
complete -c ringway -n "__fish_ringway_using_subcommand recv" -s f -l filter -d 'Only frames that match, as `man pcap-filter` describes it; of an interface\'s, the kernel keeps the others' -r
complete -c ringway -n "__fish_ringway_using_subcommand recv" -l sample -d 'One in so many of the frames that match' -r
complete -c ringway -n "__fish_ringway_using_subcommand recv" -s w -l write -d 'Record what comes into this capture file, as `ringway capture` does; - for standard output' -r -F
complete -c ringway -n "__fish_ringway_using_subcommand recv" -s i -l idle -d 'End when nothing has come for so long: 2s, 200ms' -r
complete -c ringway -n "__fish_ringway_using_subcommand recv" -s d -l duration -d 'End after this time: 10s, 200ms, 2m [default: run until interrupted]' -r
complete -c ringway -n "__fish_ringway_using_subcommand recv" -l verify -d 'Check sequence numbers, checksums and payload of frames that `ringway gen` sends'
complete -c ringway -n "__fish_ringway_using_subcommand recv" -s p -l print -d 'Print a line for each packet: time (UTC), addresses, bytes, and what its headers say'
complete -c ringway -n "__fish_ringway_using_subcommand recv" -s x -l hex -d 'Print the bytes of each packet, too'
complete -c ringway -n "__fish_ringway_using_subcommand recv" -l overwrite -d 'Replace a file that is there already, which is refused otherwise'
complete -c ringway -n "__fish_ringway_using_subcommand recv" -l force -d 'Take an interface although it carries the machine\'s default route, or your own connection'
complete -c ringway -n "__fish_ringway_using_subcommand recv" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand recv" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand capture" -s w -l write -d 'File to write; - for standard output. With rotation it may have the time in its name, as strftime(3) writes it: x-%Y%m%d-%H%M%S.pcap' -r -F
complete -c ringway -n "__fish_ringway_using_subcommand capture" -s n -l count -d 'End after so many frames: 1000, 10k, 1.5M' -r
complete -c ringway -n "__fish_ringway_using_subcommand capture" -s f -l filter -d 'Only frames that match, as `man pcap-filter` describes it; of an interface\'s, the kernel keeps the others' -r
complete -c ringway -n "__fish_ringway_using_subcommand capture" -l sample -d 'One in so many of the frames that match' -r
complete -c ringway -n "__fish_ringway_using_subcommand capture" -s s -l snaplen -d 'Bytes that are kept of a frame [default: all]' -r
complete -c ringway -n "__fish_ringway_using_subcommand capture" -l rotate-size -d 'Begin another file, with the next number, after so many bytes: 100M' -r
complete -c ringway -n "__fish_ringway_using_subcommand capture" -l rotate-time -d 'Begin another file after this time: 60s, 5m, 24h' -r
complete -c ringway -n "__fish_ringway_using_subcommand capture" -l files -d 'Keep only the last files' -r
complete -c ringway -n "__fish_ringway_using_subcommand capture" -s d -l duration -d 'End after this time: 10s, 200ms, 2m [default: run until interrupted]' -r
complete -c ringway -n "__fish_ringway_using_subcommand capture" -s p -l print -d 'Print a line for each packet: time (UTC), addresses, bytes, and what its headers say'
complete -c ringway -n "__fish_ringway_using_subcommand capture" -s x -l hex -d 'Print the bytes of each packet, too'
complete -c ringway -n "__fish_ringway_using_subcommand capture" -l overwrite -d 'Replace a file that is there already, which is refused otherwise'
complete -c ringway -n "__fish_ringway_using_subcommand capture" -l force -d 'Take an interface although it carries the machine\'s default route, or your own connection'
complete -c ringway -n "__fish_ringway_using_subcommand capture" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand capture" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand bridge" -s d -l duration -d 'End after this time: 10s, 200ms, 2m [default: run until interrupted]' -r
complete -c ringway -n "__fish_ringway_using_subcommand bridge" -l force -d 'Take an interface although it carries the machine\'s default route, or your own connection'
complete -c ringway -n "__fish_ringway_using_subcommand bridge" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand bridge" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand lb" -l to -d 'How many pipes, or the ports that packets go to' -r
complete -c ringway -n "__fish_ringway_using_subcommand lb" -l name -d 'Name of the pipes [default: that of the port]' -r
complete -c ringway -n "__fish_ringway_using_subcommand lb" -l hash -d 'What decides where a packet goes' -r
complete -c ringway -n "__fish_ringway_using_subcommand lb" -l queue -d 'Buffers for packets that outputs have no room for: 4096, 10k' -r
complete -c ringway -n "__fish_ringway_using_subcommand lb" -s f -l filter -d 'Only frames that match, as `man pcap-filter` describes it; of an interface\'s, the kernel keeps the others' -r
complete -c ringway -n "__fish_ringway_using_subcommand lb" -l sample -d 'One in so many of the frames that match' -r
complete -c ringway -n "__fish_ringway_using_subcommand lb" -s d -l duration -d 'End after this time: 10s, 200ms, 2m [default: run until interrupted]' -r
complete -c ringway -n "__fish_ringway_using_subcommand lb" -l copy -d 'Every output gets every packet, in a copy'
complete -c ringway -n "__fish_ringway_using_subcommand lb" -l redistribute -d 'The share of an output whose consumer is away goes to the others: a pipe that no program has open, a switch without other ports, an interface without a link'
complete -c ringway -n "__fish_ringway_using_subcommand lb" -l poll -d 'Look at all ports all the time instead of sleeping'
complete -c ringway -n "__fish_ringway_using_subcommand lb" -l force -d 'Take an interface although it carries the machine\'s default route, or your own connection'
complete -c ringway -n "__fish_ringway_using_subcommand lb" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand lb" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand ping" -s n -l count -d 'End after so many pings: 1000, 10k, 1.5M' -r
complete -c ringway -n "__fish_ringway_using_subcommand ping" -s r -l rate -d 'Send so many a second, answered or not: 1k, 10Mbps' -r
complete -c ringway -n "__fish_ringway_using_subcommand ping" -s s -l size -d 'Frame size in bytes without CRC, or a range that is stepped through [default: 60, or 78 with IPv6]' -r
complete -c ringway -n "__fish_ringway_using_subcommand ping" -s t -l timeout -d 'A ping that is not answered in this time is lost: 1s, 200ms' -r
complete -c ringway -n "__fish_ringway_using_subcommand ping" -l src -d 'Source address' -r
complete -c ringway -n "__fish_ringway_using_subcommand ping" -l dst -d 'Destination address [default: 10.1.0.1, or fd01::1 with IPv6]' -r
complete -c ringway -n "__fish_ringway_using_subcommand ping" -l src-mac -d 'Source MAC address [default: made from the process id]' -r
complete -c ringway -n "__fish_ringway_using_subcommand ping" -l dst-mac -d 'Destination MAC address [default: broadcast, and then that of the first answer]' -r
complete -c ringway -n "__fish_ringway_using_subcommand ping" -s d -l duration -d 'End after this time: 10s, 200ms, 2m [default: run until interrupted]' -r
complete -c ringway -n "__fish_ringway_using_subcommand ping" -l poll -d 'Look at the port all the time instead of sleeping'
complete -c ringway -n "__fish_ringway_using_subcommand ping" -l force -d 'Take an interface although it carries the machine\'s default route, or your own connection'
complete -c ringway -n "__fish_ringway_using_subcommand ping" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand ping" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand pong" -s n -l count -d 'End after so many answers: 1000, 10k, 1.5M' -r
complete -c ringway -n "__fish_ringway_using_subcommand pong" -l mac -d 'Own MAC address, for answers to pings to all [default: made from the process id]' -r
complete -c ringway -n "__fish_ringway_using_subcommand pong" -s f -l filter -d 'Only frames that match, as `man pcap-filter` describes it; of an interface\'s, the kernel keeps the others' -r
complete -c ringway -n "__fish_ringway_using_subcommand pong" -l sample -d 'One in so many of the frames that match' -r
complete -c ringway -n "__fish_ringway_using_subcommand pong" -s d -l duration -d 'End after this time: 10s, 200ms, 2m [default: run until interrupted]' -r
complete -c ringway -n "__fish_ringway_using_subcommand pong" -l all -d 'Send back everything'
complete -c ringway -n "__fish_ringway_using_subcommand pong" -l poll -d 'Look at the port all the time instead of sleeping'
complete -c ringway -n "__fish_ringway_using_subcommand pong" -l force -d 'Take an interface although it carries the machine\'s default route, or your own connection'
complete -c ringway -n "__fish_ringway_using_subcommand pong" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand pong" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand shape" -s w -l bandwidth -d 'Bits a second, 10Mbps or tc\'s 10mbit, or packets, 1kpps' -r
complete -c ringway -n "__fish_ringway_using_subcommand shape" -s q -l queue -d 'What may wait for the bandwidth: 100 frames, or 64kB [default: 1000]' -r
complete -c ringway -n "__fish_ringway_using_subcommand shape" -l overhead -d 'Bytes of the bandwidth that each frame takes beside its own; of Ethernet, with CRC, preamble and gap, 24 [default: 0]' -r
complete -c ringway -n "__fish_ringway_using_subcommand shape" -s D -l delay -d 'Time that frames take' -r
complete -c ringway -n "__fish_ringway_using_subcommand shape" -s r -l reorder -d 'Hold a share of the frames back, so that others overtake them: 1%,5ms' -r
complete -c ringway -n "__fish_ringway_using_subcommand shape" -s l -l loss -d 'Share of the frames that is lost' -r
complete -c ringway -n "__fish_ringway_using_subcommand shape" -l duplicate -d 'Share of the frames that comes twice' -r
complete -c ringway -n "__fish_ringway_using_subcommand shape" -l seed -d 'Lose and delay the same frames as the run that had this number' -r
complete -c ringway -n "__fish_ringway_using_subcommand shape" -l memory -d 'Bytes of memory for the frames that are on their way in one direction, one frame for each 256 of them' -r
complete -c ringway -n "__fish_ringway_using_subcommand shape" -s d -l duration -d 'End after this time: 10s, 200ms, 2m [default: run until interrupted]' -r
complete -c ringway -n "__fish_ringway_using_subcommand shape" -l overtake -d 'Let frames with a shorter delay overtake others'
complete -c ringway -n "__fish_ringway_using_subcommand shape" -l force -d 'Take an interface although it carries the machine\'s default route, or your own connection'
complete -c ringway -n "__fish_ringway_using_subcommand shape" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand shape" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "new" -d 'Make a switch that stays although it has no ports'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "list" -d 'Show the switches and their ports'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "attach" -d 'Attach network interfaces, or ports that have been made to stay: all of them, or none'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "detach" -d 'Take interfaces, or ports that have been made to stay, off their switch: all of them, or none'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "delete" -d 'Detach all interfaces, and let the switch go with its last port'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "forward" -d 'Choose how a switch forwards'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "port" -d 'Show or choose how a port takes part: VLANs, source addresses, rate, floods, isolation, losslessness; unblock it'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "mirror" -d 'Show another port copies of what passes ports of a switch: one of the switch, or any other'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "fdb" -d 'Show which address is behind which port; add and remove addresses'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "multicast" -d 'Choose whether frames for groups of IP go to all ports, or to members (IGMP and MLD snooping)'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "mdb" -d 'Show which port is in which group of IP, where the switch snoops'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "vlan" -d 'Show the VLANs of each port'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "stats" -d 'Show what each port has sent, received and lost, and why'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "save" -d 'Print switches as the system daemon\'s configuration declares them'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and not __fish_seen_subcommand_from new list attach detach delete forward port mirror fdb multicast mdb vlan stats save help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from new" -l one-address -d 'Each program\'s port that joins it may send with one source address only: the first that it uses'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from new" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from new" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from list" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from attach" -l host -d 'With the host\'s network stack behind the first of them, as another port'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from attach" -l force -d 'Take an interface although it carries the machine\'s default route, or your own connection'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from attach" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from attach" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from detach" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from detach" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from forward" -l ageing -d 'learning: forget an address that was not seen for so many seconds (or 5m), by default 300; 0: never' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from forward" -l address -d 'static: this address is behind this port' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from forward" -l over -d 'hash: a port that gets its share of what all others send; each flow stays on one' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from forward" -l back -d 'hash: the port that gets what those ports send' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from forward" -l drop-unknown -d 'static: drop what is for other addresses, in place of flooding it'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from forward" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from forward" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l access -d 'In this VLAN alone, without tags' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l trunk -d 'In these VLANs, with tags' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l native -d 'The VLAN of the trunk\'s frames that have no tag' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l mac -d 'The source addresses that it may send with, with commas between them; what it sends with others is dropped' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l lossless -d 'Let senders wait when the port is full; for a port that frees nothing, so many milliseconds (or 2s) at most' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l group-forward -d 'Of the link-local groups 01:80:c2:00:00:00 to 0f (spanning tree, LACP, LLDP), which go from an interface to no other, those that this one passes on: a bit for each, as in Linux\'s group_fwd_mask; 0xffff for all' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l multicast-router -d 'Where the switch snoops (`ringway switch multicast`): have the port get all groups, and what hosts say of theirs, as a router\'s does; `auto`: if queries come by it' -r -f -a "auto\t'If queries come by the port'
always\t'Whether queries come or not'"
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l filter-in -d 'Drop what the port sends and this filter expression does not match (pcap-filter(7)); it sees frames as the port sends them, with their tags' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l filter-out -d 'Drop what is for the port and this filter expression does not match; it sees frames as the port is to get them' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l max-addresses -d 'Drop what the port sends with further addresses than so many (1 to 1024); an address that was not seen for the ageing time makes room' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l rate -d 'Drop what the port sends over so many bits a second, 100Mbit/s or 100Mbps; without CRC' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l burst -d 'Bytes that it may send at once after it was silent, 64kB; a longer frame passes when it was silent long enough [default: a quarter of a second of the rate, and 65536 at least]' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l storm -d 'Drop what the port sends and the switch would flood (broadcast, multicast, unknown addresses) over so many frames a second, 1000 or 1000pps; as many may come at once' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l storm-broadcast -d 'Drop what the port sends to all over so many frames a second, beside --storm' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l storm-broadcast-burst -d 'How many of these may come at once, after there were none for a while [default: those of a second]' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l storm-multicast -d 'Drop what the port sends to other groups over so many frames a second, whether the switch floods them or not, beside --storm' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l storm-multicast-burst -d 'How many of these may come at once, after there were none for a while [default: those of a second]' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l storm-unknown -d 'Drop what the port sends to addresses that the switch does not know over so many frames a second, beside --storm' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l storm-unknown-burst -d 'How many of these may come at once, after there were none for a while [default: those of a second]' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l no-vlan -d 'Take no part in VLANs'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l one-address -d 'Only one source address: the first that it sends with'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l any-address -d 'Any source address'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l lossy -d 'Lose packets when the port is full'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l isolated -d 'Let nothing pass between the port and other isolated ports: they reach all ports that are not'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l no-isolated -d 'Let it reach isolated ports again'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l swap-buffers -d 'Let buffers change hands between the port and other such ports, where they are in one region (vale0:a@1), in place of copying packets'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l no-swap-buffers -d 'Copy packets again'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l no-filter-in -d 'Let it send all frames again'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l no-filter-out -d 'Let it get all frames again'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l no-max-addresses -d 'Let it send with as many addresses as the switch can learn of a port again'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l no-rate -d 'Let it send as much as it likes again'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l no-storm -d 'Take that limit off'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l no-storm-broadcast -d 'Take that limit off'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l no-storm-multicast -d 'Take that limit off'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l no-storm-unknown -d 'Take that limit off'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l unblock -d 'Let a port take part again that was blocked because frames went round'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from port" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mirror" -l to -d 'The port that sends the copies: of another switch, a pipe\'s end, an interface, or a capture file' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mirror" -l direction -d 'What the ports send into the switch, what they receive from it, or both' -r -f -a "sent\t''
received\t''
both\t''"
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mirror" -s f -l filter -d 'Only frames that match, as `man pcap-filter` describes it' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mirror" -l sample -d 'One in so many of the frames that match' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mirror" -s d -l duration -d 'End after this time: 10s, 200ms, 2m [default: run until interrupted]' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mirror" -l force -d 'Take an interface although it carries the machine\'s default route, or your own connection'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mirror" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mirror" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mirror" -a "add" -d 'Set a mirror that belongs to the switch: one of its ports gets copies of what others send and receive'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mirror" -a "del" -d 'Delete a mirror of a switch'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mirror" -a "show" -d 'Show the mirrors of a switch, or of all, and what has become of their copies'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mirror" -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from fdb" -l port -d 'Only addresses behind this port' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from fdb" -l vlan -d 'Only addresses in this VLAN' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from fdb" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from fdb" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from fdb" -a "show" -d 'Show which address is behind which port, and how many seconds ago it was seen last'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from fdb" -a "add" -d 'Add a static address: it is behind this port, neither ages nor moves, and outlives the daemon'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from fdb" -a "del" -d 'Forget an address, static or learned'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from fdb" -a "flush" -d 'Forget all addresses that were learned, or some'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from fdb" -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from multicast" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from multicast" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mdb" -l vlan -d 'Only groups in this VLAN' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mdb" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mdb" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mdb" -a "show" -d 'Show which port is in which group'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from mdb" -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from vlan" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from vlan" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from stats" -s d -l duration -d 'End after this time: 10s, 200ms, 2m [default: run until interrupted]' -r
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from stats" -s w -l watch -d 'Again every second, until interrupted: with rates'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from stats" -l totals -d 'With --watch: totals beside the rates'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from stats" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from stats" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from save" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from save" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "new" -d 'Make a switch that stays although it has no ports'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "list" -d 'Show the switches and their ports'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "attach" -d 'Attach network interfaces, or ports that have been made to stay: all of them, or none'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "detach" -d 'Take interfaces, or ports that have been made to stay, off their switch: all of them, or none'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "delete" -d 'Detach all interfaces, and let the switch go with its last port'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "forward" -d 'Choose how a switch forwards'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "port" -d 'Show or choose how a port takes part: VLANs, source addresses, rate, floods, isolation, losslessness; unblock it'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "mirror" -d 'Show another port copies of what passes ports of a switch: one of the switch, or any other'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "fdb" -d 'Show which address is behind which port; add and remove addresses'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "multicast" -d 'Choose whether frames for groups of IP go to all ports, or to members (IGMP and MLD snooping)'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "mdb" -d 'Show which port is in which group of IP, where the switch snoops'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "vlan" -d 'Show the VLANs of each port'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "stats" -d 'Show what each port has sent, received and lost, and why'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "save" -d 'Print switches as the system daemon\'s configuration declares them'
complete -c ringway -n "__fish_ringway_using_subcommand switch; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand vm; and not __fish_seen_subcommand_from attach help" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand vm; and not __fish_seen_subcommand_from attach help" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand vm; and not __fish_seen_subcommand_from attach help" -f -a "attach" -d 'Give a virtual machine a port of a switch, for as long as this runs'
complete -c ringway -n "__fish_ringway_using_subcommand vm; and not __fish_seen_subcommand_from attach help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand vm; and __fish_seen_subcommand_from attach" -l socket -d 'The Unix socket at which the machine\'s monitor is waited for; it speaks vhost-user' -r -F
complete -c ringway -n "__fish_ringway_using_subcommand vm; and __fish_seen_subcommand_from attach" -l stream -d 'The same, and each frame comes and goes behind its length: slower, for monitors that have nothing else' -r -F
complete -c ringway -n "__fish_ringway_using_subcommand vm; and __fish_seen_subcommand_from attach" -s d -l duration -d 'End after this time: 10s, 200ms, 2m [default: run until interrupted]' -r
complete -c ringway -n "__fish_ringway_using_subcommand vm; and __fish_seen_subcommand_from attach" -l connect -d 'The monitor waits at the socket: connect to it, also again'
complete -c ringway -n "__fish_ringway_using_subcommand vm; and __fish_seen_subcommand_from attach" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand vm; and __fish_seen_subcommand_from attach" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand vm; and __fish_seen_subcommand_from help" -f -a "attach" -d 'Give a virtual machine a port of a switch, for as long as this runs'
complete -c ringway -n "__fish_ringway_using_subcommand vm; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and not __fish_seen_subcommand_from set show clear help" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and not __fish_seen_subcommand_from set show clear help" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and not __fish_seen_subcommand_from set show clear help" -f -a "set" -d 'Direct only matching frames to the programs that have the port open'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and not __fish_seen_subcommand_from set show clear help" -f -a "show" -d 'Show the filters and their counters'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and not __fish_seen_subcommand_from set show clear help" -f -a "clear" -d 'Direct all frames to the programs again'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and not __fish_seen_subcommand_from set show clear help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and __fish_seen_subcommand_from set" -s s -l sample -d 'One in so many of the frames that match' -r
complete -c ringway -n "__fish_ringway_using_subcommand filter; and __fish_seen_subcommand_from set" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and __fish_seen_subcommand_from set" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and __fish_seen_subcommand_from show" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and __fish_seen_subcommand_from clear" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and __fish_seen_subcommand_from clear" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and __fish_seen_subcommand_from help" -f -a "set" -d 'Direct only matching frames to the programs that have the port open'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show the filters and their counters'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and __fish_seen_subcommand_from help" -f -a "clear" -d 'Direct all frames to the programs again'
complete -c ringway -n "__fish_ringway_using_subcommand filter; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand action; and not __fish_seen_subcommand_from set show clear help" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand action; and not __fish_seen_subcommand_from set show clear help" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand action; and not __fish_seen_subcommand_from set show clear help" -f -a "set" -d 'Make a program decide where each frame goes'
complete -c ringway -n "__fish_ringway_using_subcommand action; and not __fish_seen_subcommand_from set show clear help" -f -a "show" -d 'Show the action programs and what has become of the frames'
complete -c ringway -n "__fish_ringway_using_subcommand action; and not __fish_seen_subcommand_from set show clear help" -f -a "clear" -d 'Have no program decide any more'
complete -c ringway -n "__fish_ringway_using_subcommand action; and not __fish_seen_subcommand_from set show clear help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand action; and __fish_seen_subcommand_from set" -s p -l program -d 'The function, if the object has several' -r
complete -c ringway -n "__fish_ringway_using_subcommand action; and __fish_seen_subcommand_from set" -s r -l redirect -d 'An interface that it may redirect to: the first is number 0, and so on' -r
complete -c ringway -n "__fish_ringway_using_subcommand action; and __fish_seen_subcommand_from set" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand action; and __fish_seen_subcommand_from set" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand action; and __fish_seen_subcommand_from show" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand action; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand action; and __fish_seen_subcommand_from clear" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand action; and __fish_seen_subcommand_from clear" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand action; and __fish_seen_subcommand_from help" -f -a "set" -d 'Make a program decide where each frame goes'
complete -c ringway -n "__fish_ringway_using_subcommand action; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show the action programs and what has become of the frames'
complete -c ringway -n "__fish_ringway_using_subcommand action; and __fish_seen_subcommand_from help" -f -a "clear" -d 'Have no program decide any more'
complete -c ringway -n "__fish_ringway_using_subcommand action; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand queue; and not __fish_seen_subcommand_from add remove help" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand queue; and not __fish_seen_subcommand_from add remove help" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand queue; and not __fish_seen_subcommand_from add remove help" -f -a "add" -d 'Direct queues to the program that has them open'
complete -c ringway -n "__fish_ringway_using_subcommand queue; and not __fish_seen_subcommand_from add remove help" -f -a "remove" -d 'Leave queues to the kernel'
complete -c ringway -n "__fish_ringway_using_subcommand queue; and not __fish_seen_subcommand_from add remove help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand queue; and __fish_seen_subcommand_from add" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand queue; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand queue; and __fish_seen_subcommand_from remove" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand queue; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand queue; and __fish_seen_subcommand_from help" -f -a "add" -d 'Direct queues to the program that has them open'
complete -c ringway -n "__fish_ringway_using_subcommand queue; and __fish_seen_subcommand_from help" -f -a "remove" -d 'Leave queues to the kernel'
complete -c ringway -n "__fish_ringway_using_subcommand queue; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand steer" -s q -l queue -d 'The receive queue, counted from 0' -r
complete -c ringway -n "__fish_ringway_using_subcommand steer" -s d -l duration -d 'End after this time: 10s, 200ms, 2m [default: run until interrupted]' -r
complete -c ringway -n "__fish_ringway_using_subcommand steer" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand steer" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand ports" -l rings -d 'Show the rings of ports that programs have open, with their counters'
complete -c ringway -n "__fish_ringway_using_subcommand ports" -l pf-ring -d 'Show the rings of PF_RING\'s programs instead'
complete -c ringway -n "__fish_ringway_using_subcommand ports" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand ports" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand top" -s i -l interval -d 'Between two looks: 1s, 200ms' -r
complete -c ringway -n "__fish_ringway_using_subcommand top" -s f -l filter -d 'Only those with this in their names' -r
complete -c ringway -n "__fish_ringway_using_subcommand top" -s d -l duration -d 'End after this time: 10s, 200ms, 2m; with --json, print the rates of each interval until then [default: run until interrupted]' -r
complete -c ringway -n "__fish_ringway_using_subcommand top" -l once -d 'Print the rates of one interval, and end, as with --json'
complete -c ringway -n "__fish_ringway_using_subcommand top" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand top" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand metrics" -l listen -d 'Serve them by HTTP at unix:/PATH, 127.0.0.1:PORT or [::1]:PORT, until interrupted' -r
complete -c ringway -n "__fish_ringway_using_subcommand metrics" -l openmetrics -d 'Print the OpenMetrics format, instead of Prometheus\' own'
complete -c ringway -n "__fish_ringway_using_subcommand metrics" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand metrics" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand log" -l level -d 'Only events that matter as much as this: error, warn, info, debug' -r
complete -c ringway -n "__fish_ringway_using_subcommand log" -l set-level -d 'Have the daemon log what matters as much as this, until it ends, and print nothing' -r
complete -c ringway -n "__fish_ringway_using_subcommand log" -s f -l follow -d 'Go on with what the daemon logs, as it happens'
complete -c ringway -n "__fish_ringway_using_subcommand log" -l audit -d 'Only audit events: what was granted and refused, and to which user'
complete -c ringway -n "__fish_ringway_using_subcommand log" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand log" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand doctor" -l peer -d 'For --try: the interface at the other end of its cable or veth pair, IF or NETNS:IF' -r
complete -c ringway -n "__fish_ringway_using_subcommand doctor" -l try -d 'Send frames through the interface in each mode, to the peer and back, and say which arrive'
complete -c ringway -n "__fish_ringway_using_subcommand doctor" -l force -d 'For --try: take interfaces although they have addresses, routes, or your own connection'
complete -c ringway -n "__fish_ringway_using_subcommand doctor" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand run" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand run" -s h -l help -d 'Print help'
complete -c ringway -n "__fish_ringway_using_subcommand schema" -l json -d 'Print JSON, one object a line: results, and, on standard error, notes and errors'
complete -c ringway -n "__fish_ringway_using_subcommand schema" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "gen" -d 'Send test frames, or those of a capture file'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "replay" -d 'Send capture files, each frame at its time'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "recv" -d 'Count what arrives; verify, print or record it'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "capture" -d 'Record what ports receive into capture files, or print it'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "bridge" -d 'Forward between two ports, both ways'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "lb" -d 'Share the packets of a port out over others'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "ping" -d 'Measure round-trip times to a `ringway pong`'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "pong" -d 'Answer `ringway ping`'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "shape" -d 'Emulate a link between two ports: bandwidth, delay, loss'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "switch" -d 'Make, show and change VALE switches'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "vm" -d 'Virtual machines on switches'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "filter" -d 'Show and change which frames the ports of interfaces get'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "action" -d 'Show and change action programs, which decide where frames go'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "queue" -d 'Add and remove receive queues of the open port of an interface'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "steer" -d 'Direct only some flows to a receive queue of a NIC'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "ports" -d 'Show all ports'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "top" -d 'Show the traffic of ports, switches and rings, live'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "metrics" -d 'Print or serve what is counted and measured, for Prometheus'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "log" -d 'Show the daemon\'s log: what was set up, what was refused, what has gone'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "doctor" -d 'Say what works on this machine, what does not, and what to do about it'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "run" -d 'Run a netmap program, unchanged, on Ringway'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "schema" -d 'Print the JSON schema of what --json prints'
complete -c ringway -n "__fish_ringway_using_subcommand help; and not __fish_seen_subcommand_from gen replay recv capture bridge lb ping pong shape switch vm filter action queue steer ports top metrics log doctor run schema help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from switch" -f -a "new" -d 'Make a switch that stays although it has no ports'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from switch" -f -a "list" -d 'Show the switches and their ports'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from switch" -f -a "attach" -d 'Attach network interfaces, or ports that have been made to stay: all of them, or none'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from switch" -f -a "detach" -d 'Take interfaces, or ports that have been made to stay, off their switch: all of them, or none'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from switch" -f -a "delete" -d 'Detach all interfaces, and let the switch go with its last port'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from switch" -f -a "forward" -d 'Choose how a switch forwards'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from switch" -f -a "port" -d 'Show or choose how a port takes part: VLANs, source addresses, rate, floods, isolation, losslessness; unblock it'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from switch" -f -a "mirror" -d 'Show another port copies of what passes ports of a switch: one of the switch, or any other'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from switch" -f -a "fdb" -d 'Show which address is behind which port; add and remove addresses'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from switch" -f -a "multicast" -d 'Choose whether frames for groups of IP go to all ports, or to members (IGMP and MLD snooping)'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from switch" -f -a "mdb" -d 'Show which port is in which group of IP, where the switch snoops'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from switch" -f -a "vlan" -d 'Show the VLANs of each port'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from switch" -f -a "stats" -d 'Show what each port has sent, received and lost, and why'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from switch" -f -a "save" -d 'Print switches as the system daemon\'s configuration declares them'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from vm" -f -a "attach" -d 'Give a virtual machine a port of a switch, for as long as this runs'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from filter" -f -a "set" -d 'Direct only matching frames to the programs that have the port open'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from filter" -f -a "show" -d 'Show the filters and their counters'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from filter" -f -a "clear" -d 'Direct all frames to the programs again'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from action" -f -a "set" -d 'Make a program decide where each frame goes'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from action" -f -a "show" -d 'Show the action programs and what has become of the frames'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from action" -f -a "clear" -d 'Have no program decide any more'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from queue" -f -a "add" -d 'Direct queues to the program that has them open'
complete -c ringway -n "__fish_ringway_using_subcommand help; and __fish_seen_subcommand_from queue" -f -a "remove" -d 'Leave queues to the kernel'
