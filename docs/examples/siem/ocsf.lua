-- One record of `pellucid ledger export --follow` as an event of OCSF 1.5.0: Detection Finding, with security_control.

-- activity, status, action, disposition and severity
local rows = {
  ["message changed"] = {1, 1, 4, 1, 3}, ["message withheld"] = {1, 1, 2, 2, 4}, ["message dropped"] = {1, 1, 2, 6, 4},
  ["result-held"] = {2, 2, 2, 3, 3}, ["result-released"] = {2, 2, 1, 9, 1}, ["result-taken"] = {3, 3, 1, 8, 1},
  ["result-denied"] = {3, 4, 2, 5, 1}, ["result-expired"] = {3, 5, 2, 5, 1},
  ["surface-changed"] = {1, 1, 2, 3, 3}, ["surface-rejected"] = {1, 1, 2, 2, 4},
  ["classified injection"] = {2, 2, 3, 1, 3}, ["classified suspected"] = {2, 2, 3, 1, 3},
  ["counterfactual hijack"] = {1, 1, 2, 2, 5}, ["counterfactual quarantined"] = {2, 2, 2, 2, 4},
  ["counterfactual refused"] = {1, 1, 2, 2, 4}, ["counterfactual waiting"] = {1, 1, 2, 2, 4},
  ["counterfactual repaired"] = {1, 1, 4, 1, 4},
  ["attestation-refused"] = {1, 1, 3, 1, 3}, ["records-lost"] = {1, 1, 3, 1, 3},
}

-- days since 1970-01-01, of the proleptic Gregorian calendar
local function days(y, m, d)
  if m <= 2 then y = y - 1; m = m + 12 end
  return 365 * y + math.floor(y / 4) - math.floor(y / 100) + math.floor(y / 400) + math.floor((153 * (m - 3) + 2) / 5) + d - 719469
end

-- milliseconds of a time in UTC, as a record has it
local function milliseconds(text)
  local y, m, d, h, min, s = text:match("^(%d+)-(%d+)-(%d+)T(%d+):(%d+):([%d.]+)Z$")
  return ((days(tonumber(y), tonumber(m), tonumber(d)) * 24 + h) * 60 + min) * 60000 + math.floor(s * 1000)
end

function ocsf(tag, timestamp, record)
  local p = record.statement.predicate
  local name = p.kind .. " " .. (p.verdict or "")
  local ids = rows[name] or rows[p.kind]
  if not ids or (p.kind == "surface-changed" and p.reason) then
    return -1, 0, 0 -- a record that is not a finding
  end
  local types, seen = {}, {}
  for _, counts in ipairs({p.findings or {}, p.withheld or {}}) do
    for code in pairs(counts) do
      if not seen[code] then seen[code] = true; types[#types + 1] = code end
    end
  end
  local title = "Pellucid: " .. name:gsub(" $", "")
  local event = {
    category_uid = 2, class_uid = 2004, activity_id = ids[1], type_uid = 200400 + ids[1],
    status_id = ids[2], action_id = ids[3], disposition_id = ids[4], severity_id = ids[5],
    time = milliseconds(p.time), message = title,
    -- what is held, released or denied updates one finding
    finding_info = {uid = p.of or p.id, title = title},
    metadata = {
      version = "1.5.0", profiles = {"security_control"}, uid = p.id, sequence = record.index,
      log_name = "pellucid evidence", product = {name = "Pellucid", vendor_name = "Pellucid"},
    },
    unmapped = p,
  }
  if #types > 0 then event.finding_info.types = types end
  if p.server then
    event.resources = {{name = p.tool and p.server .. "/" .. p.tool or p.server, type = "MCP server or tool"}}
  end
  return 1, timestamp, event
end
