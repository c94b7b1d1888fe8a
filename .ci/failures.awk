# Reads TAP and prints what failed: each failing assertion once, with the file and the tests around it, and what TAP says of it.
# -v names=FILE: the names alone are added there. Both are bounded.
BEGIN { max_failures = 30; max_lines = 40; max_width = 300 }

function cut(text) { return length(text) > max_width ? substr(text, 1, max_width) " …" : text }

function close_block() { if (block) print ""; block = 0 }

{ match($0, /^ */); depth = RLENGTH }

# The diagnosis of a failure goes from `---` to `...`, two deeper than its line.
block && depth == block_depth && /^ *\.\.\.$/ { close_block(); next }
block && depth < block_depth && NF > 0 { close_block() }
block {
  if (++lines <= max_lines) print "    " cut(substr($0, block_depth + 1))
  next
}

/^ *# Subtest: / {
  sub(/^ *# Subtest: /, "")
  around[depth] = $0
  inner[depth] = 0
  last[depth] = last[depth + 4] = ""
}

/^ *not ok / && !/ # (TODO|SKIP)/ {
  sub(/^ *not ok [0-9]+( - )?/, "")
  sub(/ # time=.*$/, "")
  # A test that failed by what is in it has been told of by that; the line of one that ran out of time comes twice.
  told = inner[depth] || $0 == last[depth]
  last[depth] = told ? $0 : ""
  inner[depth] = 0
  if (depth >= 4) inner[depth - 4] = 1
  if (told || ++failures > max_failures) next
  path = ""
  for (at = 0; at < depth; at += 4) path = path around[at] " > "
  print "FAILED " cut(path $0)
  if (names) print cut(path $0) >> names
  block = 1
  block_depth = depth + 2
  lines = 0
}

# A line of meson's.
/^ *[0-9]+\/[0-9]+ .* (FAIL|TIMEOUT|ERROR|INTERRUPT) / {
  gsub(/^ +| +$/, "")
  gsub(/ +/, " ")
  print "FAILED " cut($0)
  if (names) print cut($0) >> names
}

END {
  close_block()
  if (failures > max_failures) print "… and " (failures - max_failures) " more"
}
