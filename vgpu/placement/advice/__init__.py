"""What would help pods that fit nowhere: rules that change the request or a property of the cards, and try that."""
