# cmake -DSOURCE=core/page -DHTML=page_template.html -DOUTPUT=page_template.cc -P compose.cmake
# Puts style, scripts and licences into page.html, together with the hashes that its policy lets run, and writes the page,
# cut where the report goes, as C++ arrays. The same inputs always make the same page.
cmake_minimum_required(VERSION 3.25)

# Text of a file; ';' and '[' are only letters here, so nothing below may treat it as a list.
file(READ ${SOURCE}/web/page.html page)
file(READ ${SOURCE}/web/page.css style)
file(READ ${SOURCE}/vendor/plot.js plot)
file(READ ${SOURCE}/vendor/LICENCES.txt licences)
file(STRINGS ${SOURCE}/web/scripts.txt names)
set(script "(() => {\n\"use strict\";\n")
foreach(name IN LISTS names)
  file(READ ${SOURCE}/web/${name} text)
  string(APPEND script "${text}")
endforeach()
string(APPEND script "})();\n")

# 'sha256-BASE64' of a text, as Content-Security-Policy wants it. Source: W3C CSP Level 3, 2.3.1; RFC 4648, 4.
function(policy_hash text out)
  string(SUBSTRING "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" 0 64 alphabet)
  string(SHA256 hex "${text}")
  string(APPEND hex "00")  # 256 bits are 42 letters and 4 bits: filled up to 43 letters and '='
  set(base64)
  foreach(letter RANGE 0 42)
    math(EXPR digit "${letter} * 6 / 4")
    math(EXPR shift "6 - ${letter} * 6 % 4")  # six of the twelve bits of three digits
    string(SUBSTRING ${hex} ${digit} 3 digits)
    math(EXPR index "(0x${digits} >> ${shift}) & 63")
    string(SUBSTRING ${alphabet} ${index} 1 sign)
    string(APPEND base64 ${sign})
  endforeach()
  set(${out} "'sha256-${base64}='" PARENT_SCOPE)
endfunction()
policy_hash("${plot}" plot_hash)
policy_hash("${script}" script_hash)

foreach(text plot script licences style)
  if("${${text}}" MATCHES "</[sS][cC][rR][iI][pP][tT]|<!--|{{[a-z]+}}")
    message(FATAL_ERROR "the ${text} of the page would end its element or hold a mark of the template")
  endif()
endforeach()
set(hashes "${plot_hash} ${script_hash}")
foreach(mark hashes style licences plot script)
  string(REPLACE "{{${mark}}}" "${${mark}}" page "${page}")
endforeach()
if(NOT page MATCHES "{{report}}")
  message(FATAL_ERROR "page.html has no {{report}}")
endif()
file(WRITE ${HTML} "${page}")

file(READ ${HTML} hex HEX)
string(FIND "${hex}" "7b7b7265706f72747d7d" cut)  # {{report}}
math(EXPR after "${cut} + 20")
string(SUBSTRING "${hex}" 0 ${cut} before_hex)
string(SUBSTRING "${hex}" ${after} -1 after_hex)
set(arrays)
foreach(part before after)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," array "${${part}_hex}")
  string(REGEX REPLACE "((0x..,){24})" "\\1\n" array "${array}")
  string(APPEND arrays "constexpr unsigned char k_${part}[] = {\n${array}\n};\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"core/page/page_template.h\"\n\nnamespace perfd {\nnamespace {\n\n${arrays}\n}  // namespace\n\nPageTemplate EmbeddedPage() { return {{reinterpret_cast<const char*>(k_before), sizeof k_before}, {reinterpret_cast<const char*>(k_after), sizeof k_after}}; }\n\n}  // namespace perfd\n")
