package io.idempotence.it.matrix;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The position of another filter, seen from ours. Its name is the first segment of the path of requests that pass it. */
record Stack(Neighbour neighbour, Place place) {
    enum Place {
        NONE,
        FRONT,
        BEHIND
    }

    static List<Stack> all() {
        List<Stack> all = new ArrayList<>();
        for (Neighbour neighbour : Neighbour.values()) {
            if (neighbour == Neighbour.NONE || neighbour == Neighbour.CONTAINER_GZIP) {
                all.add(new Stack(neighbour, Place.NONE));
            } else {
                all.add(new Stack(neighbour, Place.FRONT));
                all.add(new Stack(neighbour, Place.BEHIND));
            }
        }
        return all;
    }

    String path() {
        String name = neighbour.name().toLowerCase(Locale.ROOT);
        return place == Place.NONE ? name : name + "-" + place.name().toLowerCase(Locale.ROOT);
    }

    @Override
    public String toString() {
        return place == Place.NONE
                ? neighbour.title()
                : neighbour.title() + (place == Place.FRONT ? ", in front" : ", behind");
    }
}
