// Package dataset turns files of rows into training examples. Opening a dataset reads every row once, renders it and
// checks it, so that a bad row is found before anything is paid for; what is kept is where each row stands, 40 bytes a
// row and 8 for the order of an epoch, so memory does not grow with what the rows say. Which rows a step sees is a function of seed and epoch alone:
// nothing of it is saved, and a resumed run sees what an unbroken one would have seen.
//
// Nothing is repaired in silence. What a decoder would let pass with another meaning (bytes that are no UTF-8, half a
// surrogate pair, a key given twice, a null where text is due) is a fault of its row, with the row's line.
package dataset
