#include "hardware/pci.h"

#include <stdlib.h>

/* Reads the domain, which a colon must follow, and the bus. */
static bool parse_bus(const char *text, unsigned long *bus) {
    char *end;
    (void)strtoul(text, &end, 16);
    if (end == text || *end != ':') return false;
    text = end + 1;
    *bus = strtoul(text, &end, 16);
    return end != text;
}

unsigned pci_bus(const struct card *card) { return card->minor + 1; }

bool pci_is_address(const char *text) {
    unsigned long bus;
    return parse_bus(text, &bus);
}

bool pci_matches(const struct card *card, const char *text) {
    unsigned long bus;
    return parse_bus(text, &bus) && bus == pci_bus(card);
}
