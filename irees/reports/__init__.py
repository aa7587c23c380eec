"""`irees report`: one HTML file that shows how a program was compiled."""
