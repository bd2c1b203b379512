// What the pages use of Observable Plot; everything else of it and of d3 is left out of the bundle as far as possible.
export {axisX, axisY, barX, gridX, gridY, plot, pointer, rectY, ruleX, ruleY, text, tickX, tip} from "@observablehq/plot";
